"""Pictures of graphs by graphviz."""

from nbta.inspect.diagram import EDGES, Diagram, End, Frame, Node
from nbta.inspect.picture import CAPTURED, FAINT, INK, LINES, WARNING, escaped, paint_of

_FONT = "Helvetica,Arial,sans-serif"
_SHAPES = {"array": "cylinder", "input": "box", "folded": "box3d", "bar": "plain"}
#: Settings with which dot stops improving early, for large graphs: 280 operations take 1 s of
#: processor time in place of 3 s, 800 take 10 s in place of minutes. (With a limit for `nslimit1`
#: boxes end up in wrong layers.)
_QUICK = {"nslimit": "1", "mclimit": "0.1"}
_STRAIGHT = {"splines": "line"}
_HUGE = 400  # boxes from which arrows are straight


#: All attributes that edges have, in the order of the alphabet: for edges between neighbours in one
#: layer, dot 2.43 takes an attribute for another one if they were declared in another order.
_EDGE = {
    "arrowhead": "normal", "arrowsize": "0.7", "class": "", "color": INK, "constraint": "true",
    "headport": "", "penwidth": "1", "style": "solid", "tailport": "", "tooltip": "", "weight": "1",
}  # fmt: skip


def digraph(diagram: Diagram):
    """The picture as a `graphviz.Digraph`."""
    import graphviz

    graph = graphviz.Digraph()
    graph.attr("graph", **_layout(diagram), label=_legend(diagram), labelloc="b")
    graph.attr("node", fontname=_FONT, fontsize="11", style="filled,rounded", fontcolor=INK)
    graph.attr("edge", **_EDGE)
    _fill(graph, diagram.root, diagram.sources)
    for edge in diagram.edges:
        sides = "ee" if edge.kind == "next" else "sn"
        graph.edge(_place(edge.tail, sides[0]), _place(edge.head, sides[1]), **_line(edge))
    return graph


def _layout(diagram):
    return {
        "fontname": _FONT, "fontsize": "11", "bgcolor": "white", "rankdir": "TB",
        "nodesep": "0.25", "ranksep": "0.35", "class": "nbta", **(_QUICK if diagram.large else {}),
        **(_STRAIGHT if diagram.count > _HUGE else {}),
    }  # fmt: skip


def _fill(graph, frame, sources):
    for item in frame.items:
        if isinstance(item, Node):
            graph.node(item.key, **_box(item, sources))
        else:
            with graph.subgraph(name=f"cluster_{item.key}") as inner:
                inner.attr(**_frame(item, sources))
                _fill(inner, item, sources)


def _frame(frame: Frame, sources):
    paint = paint_of(frame.source, sources)
    whole = frame.kind == "operation"
    text = escaped(frame.title)
    return {
        "label": f"<<b>{text}</b>>" if whole else f"<<i>{text}</i>>",
        "labelloc": "t", "labeljust": "l", "fontname": _FONT, "fontsize": "11",
        "style": "rounded,filled", "color": paint.edge, "penwidth": "1.6" if whole else "0.8",
        "fillcolor": "#fafafa" if whole else "#f0f0f0", "fontcolor": INK,
        "class": _class(frame, frame.kind, sources), "tooltip": _tooltip(frame.title),
    }  # fmt: skip


def _class(item, kind, sources):
    place = [] if item.source is None else [f"source-{sources.index(item.source)}"]
    warning = ["warning"] if getattr(item, "warning", "") else []
    return " ".join([kind, *place, *warning])


def _tooltip(text):
    import graphviz

    return graphviz.escape(escaped(text))


def _box(node: Node, sources):
    paint = paint_of(node.source, sources, node.kind)
    return {
        "label": _table(node, sources) if node.cells else _text(node),
        "shape": _SHAPES.get(node.kind, "box"), "fillcolor": paint.fill,
        "color": WARNING if node.warning else paint.edge,
        "penwidth": "2.4" if node.warning else "1.1", "margin": "0.09,0.05",
        "class": _class(node, node.kind, sources), "tooltip": _tooltip(node.tooltip),
        **({"style": "filled", "height": "0.7"} if node.kind in ("array", "folded") else {}),
    }  # fmt: skip


def _text(node):
    """The lines of a box: the name in bold, the others smaller."""
    name, *others = map(escaped, node.lines)
    lid = '<br/><font point-size="5"> </font>' if node.kind == "array" else ""
    small = "".join(f'<br/><font point-size="9.5" color="#333333">{line}</font>' for line in others)
    warning = f'<br/><font point-size="9.5" color="#a84300"><b>{escaped(node.warning)}</b></font>'
    return f"<{lid}<b>{name}</b>{small}{warning if node.warning else ''}>"


def _table(node, sources):
    cells = "".join(_cell(number, cell, sources) for number, cell in enumerate(node.cells))
    table = 'border="0" cellborder="1" cellspacing="0" cellpadding="4"'
    return f'<<table {table} color="{FAINT}"><tr>{cells}</tr></table>>'


def _cell(number, cell, sources):
    fill = CAPTURED if cell.kind == "captured" else "#ffffff"
    if cell.source is not None:
        fill = paint_of(cell.source, sources).fill
    first, *others = map(escaped, cell.lines)
    small = "".join(f'<br/><font point-size="9">{line}</font>' for line in others)
    kind = "captured<br/>" if cell.kind == "captured" else ""
    mark = f'<font point-size="8" color="{FAINT}"><i>{kind}</i></font>' if kind else ""
    return f'<td port="p{number}" bgcolor="{fill}">{mark}<b>{first}</b>{small}</td>'


def _place(end: End, side):
    if end.cell is not None:
        return f"{end.node.key}:p{end.cell}:{side}"
    return f"{end.node.key}:{side}" if end.node.cells else end.node.key


def _line(edge):
    line = LINES[edge.kind]
    settings = {
        "color": line.color, "style": line.dash, "penwidth": str(line.width),
        "arrowhead": line.head, "class": f"edge {edge.kind}", "tooltip": EDGES[edge.kind],
    }  # fmt: skip
    if edge.kind in ("next", "race"):
        settings["constraint"] = "false"
    if edge.kind in ("handle", "control"):
        settings["weight"] = "0"
    return settings


_STROKES = {"solid": "———", "dashed": "— —", "dotted": "· · · ·"}


_COLUMNS = 4  # of the legend


def _legend(diagram):
    """What lines and colours mean, in a table below the picture."""
    items = [
        f'<td align="left"><font color="{LINES[kind].color}"><b>{_STROKES[LINES[kind].dash]}</b>'
        f"</font> {EDGES[kind]}</td>"
        for kind in diagram.kinds
    ]
    items += [
        f'<td align="left" bgcolor="{paint_of(source, diagram.sources).fill}">made by '
        f"<b>{escaped(source)}</b></td>"
        for source in diagram.sources
    ]
    rows = [items[i : i + _COLUMNS] for i in range(0, len(items), _COLUMNS)]
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<<table border="0" cellspacing="8" cellpadding="3">{body}</table>>' if body else ""

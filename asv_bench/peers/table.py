"""Ratios to nbta from samples, as Markdown: a table for each subject."""

from ..figures import number, quantity, ratios, spread
from ..figures import table as markdown


def compared(row):
    """Of a case: median seconds of nbta, and by peer the ratios' median, least and most.

    A ratio is of neighbours: of a peer's sample and nbta's of the same round. A peer that gave no
    figures has a note instead.
    """
    base, *others = row["peers"]
    if "samples" not in base:
        return None, {peer["peer"]: _note(peer) for peer in others}
    found = {
        peer["peer"]: spread(ratios(peer["samples"], base["samples"]))
        if "note" not in peer
        else _note(peer)
        for peer in others
    }
    return spread(base["samples"])[0], found


def _note(peer):
    lines = peer.get("note", "no figures").strip().splitlines()
    return lines[-1].replace("|", "/")[:60]


def cell(found):
    """An entry: the ratio with its spread, bold where all samples are ahead of nbta."""
    if found is None or isinstance(found, str):
        return found or ""
    middle, least, most = found
    text = f"{number(middle)} ({number(least)} to {number(most)})"
    return f"**{text}**" if most < 1 else text


def told(row):
    """A case in one line."""
    seconds, found = compared(row)
    mine = "nbta failed" if seconds is None else f"nbta {quantity(seconds)}"
    return ", ".join([mine, *(f"{name} {cell(value)}" for name, value in found.items())])


def subjects(rows):
    """Rows by subject, in their order."""
    found = {}
    for row in rows:
        found.setdefault(row["subject"], []).append(row)
    return found


def table(rows):
    """A line for each case, a column for each peer that has any."""
    found = [(row["title"], *compared(row)) for row in rows]
    peers = dict.fromkeys(name for *_, others in found for name in others)
    lines = [
        [title, quantity(seconds) if seconds else "failed", *(cell(others.get(p)) for p in peers)]
        for title, seconds, others in found
    ]
    return markdown(["case", "nbta", *peers], lines)


def tables(rows):
    """All of them, with headings."""
    return "\n\n".join(f"### {name}\n\n{table(found)}" for name, found in subjects(rows).items())


def versions(rows):
    """What was compared, in one line; where runs had different versions, all of them."""
    found = {}
    for row in rows:
        for peer in row["peers"]:
            for name, version in peer.get("versions", {}).items():
                found.setdefault(name, set()).add(version)
    return ", ".join(f"{name} {' and '.join(sorted(known))}" for name, known in found.items())

"""Text in pictures: short, on few lines, and without characters that no picture can show."""

import html

#: Longest name in a node; the tooltip has all of it.
_NAME = 34


def clean(text: str) -> str:
    """A text without control characters and lone surrogates, which XML cannot hold.

    Examples
    --------
    >>> clean("one\\x00two")
    'one\\ufffdtwo'
    """
    return "".join(c if c.isprintable() or c == " " else "\ufffd" for c in str(text))


def escaped(text: str) -> str:
    """A text as it stands in HTML, SVG and in labels of graphviz.

    Examples
    --------
    >>> escaped('<b>"&')
    '&lt;b&gt;&quot;&amp;'
    """
    return html.escape(clean(text))


def shortened(text: str, limit: int = _NAME) -> str:
    """A text of at most so many characters; what is left out is in the middle."""
    if len(text) <= limit:
        return text
    head = (limit - 1) // 2
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"

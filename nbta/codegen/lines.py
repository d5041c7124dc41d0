"""Lines of generated source, nested, with places that are filled in later."""


class Lines:
    """A block of source.

    Parameters
    ----------
    depth : int
        How far it is indented.
    """

    def __init__(self, depth=0):
        self.depth = depth
        self._items: list = []

    def add(self, *lines: str) -> None:
        """More lines at the end."""
        self._items.extend("    " * self.depth + line for line in lines)

    def place(self) -> "Lines":
        """A block at the end, on the same depth, whose lines come later."""
        block = Lines(self.depth)
        self._items.append(block)
        return block

    def nest(self, header: str) -> "Lines":
        """A block below a header such as ``for i in range(n):``."""
        self.add(header)
        block = Lines(self.depth + 1)
        self._items.append(block)
        return block

    @property
    def size(self) -> int:
        """How many lines and blocks it has."""
        return len(self._items)

    def all_from(self, start, test) -> bool:
        """Whether all from some place on are lines that pass a test, with no blocks among them."""
        items = self._items[start:]
        return all(isinstance(item, str) and test(item) for item in items)

    def __iter__(self):
        for item in self._items:
            if isinstance(item, Lines):
                yield from item
            else:
                yield item

    def __bool__(self):
        return any(True for _ in self)

    def __str__(self):
        return "\n".join(self)

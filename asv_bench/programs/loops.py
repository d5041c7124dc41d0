"""What programs are written with: a ``for`` loop over integers."""

import nbta


def repeat(start, stop, body, *variables, **options):
    """``for i in range(start, stop): variables = body(i, *variables)``.

    Gives the last variables, or the variable where there is one; ``options`` are those of
    `nbta.while_loop`.
    """
    return _repeat(lambda i, *_: i < stop, start, 1, body, variables, options)


def repeat_down(start, stop, body, *variables, **options):
    """``for i in range(start, stop, -1): variables = body(i, *variables)``."""
    return _repeat(lambda i, *_: i > stop, start, -1, body, variables, options)


def _repeat(goes_on, start, step, body, variables, options):
    def following(i, *variables):
        found = body(i, *variables)
        return i + step, *(found if isinstance(found, tuple) else (found,))

    _, *last = nbta.while_loop(goes_on, following, (start, *variables), **options)
    return last[0] if len(last) == 1 else tuple(last)

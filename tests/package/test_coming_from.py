"""Pages on other libraries: nbta's cells print what is written beside them.

What is written there is what the other library prints; see peer_pages.py.
"""

from pathlib import Path

import pytest
from peer_pages import Block, blocks, main, pairs, run

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted((DOCS / "coming_from").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_cells_print_what_the_other_library_does(page):
    text = page.read_text()
    ours = [block for block in blocks(text) if block.ours]
    printed = {block.line: out for block, out in run(ours, str(page))}
    beside = list(pairs(text))
    assert len(beside) >= 7
    assert sum(bool(theirs.printed) for theirs, _ in beside) >= len(beside) - 2
    for theirs, mine in beside:
        assert printed[mine.line] == theirs.printed, f"{page}:{mine.line}"


PAGE = """\
<div class="pair jax">

```python
x = 2
print(x)
# 2
if x:
    print(x, [x, x])
    # 2 [2, 2]
```

```{code-cell} python
y = 3
```

</div>

```python
x += 1  # no pair
```
"""


def test_blocks_and_what_they_say_they_print():
    [(theirs, ours)] = pairs(PAGE)
    assert theirs.printed == "2\n2 [2, 2]\n"
    assert ours == Block(True, "y = 3\n", 13)
    assert [block.line for block in blocks(PAGE)] == [4, 13, 19]


@pytest.mark.parametrize(("said", "wrong"), [("# 4\n", 0), ("# 5\n", 1), ("", 1)])
def test_blocks_of_the_other_library_are_checked(tmp_path, capsys, said, wrong):
    page = tmp_path / "page.md"
    page.write_text(f"```python\nx = 2\n```\n\n```python\nprint(2 * x)\n{said}```\n")
    assert main([str(page)]) == wrong
    assert ("page.md:6: prints\n4\n" in capsys.readouterr().out) == bool(wrong)


def test_a_block_that_fails_is_counted(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("```python\n1 / 0\n```\n")
    assert main([str(page)]) == 1
    assert "page.md" in capsys.readouterr().err

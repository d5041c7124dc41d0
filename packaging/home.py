"""What follows from the project's public home, ``[tool.nbta]`` of pyproject.toml.

The package's metadata (`metadata.py`) and the documentation (docs/conf.py) take all addresses of
the project from here. While the home is empty there are none: no links in the metadata, no button
to edit a page.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"(!\[[^\]]*)?\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def settings(root=ROOT) -> dict[str, str]:
    """Read the table ``[tool.nbta]``.

    Returns
    -------
    dict
        ``home``, the address of the repository, and ``site``, where the documentation is
        published; each may be empty.

    Raises
    ------
    ValueError
        For an address of another form, and for a site without a home.
    """
    text = (Path(root) / "pyproject.toml").read_text(encoding="utf-8")
    found = tomllib.loads(text)["tool"]["nbta"]
    home, site = found["home"], found["site"]
    if home and not re.fullmatch(r"https://[^/\s]+/[^/\s]+/[^/\s]+", home):
        raise ValueError(f'[tool.nbta] home must be like "https://HOST/OWNER/NAME", not {home!r}')
    if site and not (home and re.fullmatch(r"https://\S+/", site)):
        raise ValueError(
            f'[tool.nbta] site must be like "https://HOST/PATH/", with a home: {site!r}'
        )
    return {"home": home, "site": site}


def urls(home: str, site: str) -> dict[str, str]:
    """Give the project's links, by the labels that package indexes know; none without a home."""
    if not home:
        return {}
    found = {
        "Homepage": site or home,
        "Documentation": site,
        "Source": home,
        "Issues": f"{home}/issues",
        "Changelog": f"{site}changelog.html" if site else f"{home}/blob/main/CHANGELOG.md",
    }
    return {label: url for label, url in found.items() if url}


def absolute(text: str, home: str, version: str, root=ROOT) -> str:
    """Make the links of a Markdown text of the top folder to files of the repository absolute.

    They lead to the tag of the version, for a development version to the branch ``main``. Without
    a home the text is returned unchanged.
    """
    if not home:
        return text
    ref = "main" if ".dev" in version else f"v{version}"

    def replacement(match):
        image, target, anchor = match.groups(default="")
        place = Path(root) / target
        if not place.exists():  # brackets and parentheses of a program, too
            return match[0]
        kind = "raw" if image else "tree" if place.is_dir() else "blob"
        return f"{image}]({home}/{kind}/{ref}/{target}{anchor})"

    return _LINK.sub(replacement, text)


def edit_context(home: str) -> dict[str, str]:
    """Give pydata-sphinx-theme what it needs for a page's edit button; empty without a home."""
    if not home:
        return {}
    host, owner, name = home.rsplit("/", 2)
    context = {"github_user": owner, "github_repo": name, "github_version": "main"}
    return {"github_url": host, "doc_path": "docs", **context}

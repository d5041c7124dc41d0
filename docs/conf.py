"""How Sphinx builds the documentation. Warnings are errors: see CONTRIBUTING.md."""

import importlib.util
import json
import os
import re
from datetime import date
from pathlib import Path

import nbta
from nbta.interface import ArrayInterface

HERE = Path(__file__).parent

_spec = importlib.util.spec_from_file_location("home", HERE.parent / "packaging" / "home.py")
_home = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_home)
#: Of the project and of its site; both are empty as long as the project has no public home.
ADDRESSES = _home.settings()

project = "nbta"
author = "The nbta developers"
copyright = f"{date.today().year}, {author}"
release = nbta.__version__
version = release.partition(".dev")[0]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
]
exclude_patterns = ["_build", "_templates", "inventories"]
templates_path = ["_templates"]
default_role = "py:obj"
nitpicky = True

# Pages. Those that begin with a notebook's header are run, in a fresh process each.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_code_prompt_show = "How the picture is drawn"
nb_code_prompt_hide = "How the picture is drawn"
suppress_warnings = ["myst-nb.lexer"]  # of pages that are built without being run
nb_execution_in_temp = True  # what a page writes does not land beside it
os.environ.setdefault("NUMBA_NUM_THREADS", "2")  # the same number on all machines
os.environ["NBTA_VERBOSE"] = "0"  # pages say nothing of compiling
os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # no warnings of the debugger in kernels

# Reference.
autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc's sections have them
add_function_parentheses = False
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_validation_checks = {
    "GL05", "GL06", "GL07", "GL08", "GL10",  # sections by their names, in order; no docstring
    "SS01", "SS03", "SS04",  # a summary that is a sentence
    "PR01", "PR02", "PR03", "PR05", "PR06", "PR10",  # parameters are the function's, in its order
    "RT01", "RT02", "SA02", "SA04",
}  # fmt: skip
#: Classes whose objects nbta makes: their attributes are described, and not how they are made. And
#: methods of tuples.
numpydoc_validation_exclude = {
    r"\.(Operation|Tensor|Function|Picture|Profile|Line|Spec|\w+Error)$",
    r"\.Spec\.(count|index)$",
}

# Other projects. A machine without a network takes the names from the files kept here.
intersphinx_mapping = {
    "numpy": ("https://numpy.org/doc/stable", (None, "inventories/numpy.inv")),
    "numba": ("https://numba.readthedocs.io/en/stable", (None, "inventories/numba.inv")),
}
intersphinx_timeout = 3

# The site.
html_theme = "pydata_sphinx_theme"
html_title = "nbta"
html_static_path = ["_static"]
html_css_files = ["nbta.css"]
html_logo = html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_baseurl = ADDRESSES["site"]  # which makes each page's canonical address
html_context = _home.edit_context(ADDRESSES["home"])
WITHOUT_SECTIONS = ("index", "install", "tutorial", "performance", "comparison", "changelog")
html_sidebars = {page: [] for page in WITHOUT_SECTIONS}
html_theme_options = {
    "navbar_align": "left",
    "logo": {"text": "nbta", "alt_text": "nbta"},
    "show_prev_next": True,
    "collapse_navigation": True,  # lists the pages of one subject of the reference
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "use_edit_page_button": bool(html_context),
}
if html_baseurl:  # a sitemap, social cards and the choice of a version need the site's address
    extensions += ["sphinx_sitemap", "sphinxext.opengraph"]
    sitemap_url_scheme = "{link}"
    ogp_site_url = html_baseurl
    html_theme_options |= {
        "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
        "switcher": {"json_url": f"{html_baseurl}versions.json", "version_match": version},
        "check_switcher": False,
    }

#: Pages whose text is a file of the top folder, which people read there too.
FROM_TOP = {"contributing": "CONTRIBUTING.md", "changelog": "CHANGELOG.md"}


def _adapt(app, page, source):
    """Take a page's text. Its links to files outside of this folder lead to the project's home.

    As long as there is none, they are downloads.
    """
    file = HERE.parent / FROM_TOP[page] if page in FROM_TOP else Path(app.env.doc2path(page))
    if file.suffix == ".md":
        app.env.note_dependency(str(file))
        text = file.read_text(encoding="utf-8")
        links = r"\[([^]]+)\]\((?!\w+:|#)([^)#\s]+)(#[^)]*)?\)"
        source[0] = re.sub(links, _link(file.parent), text)


def _link(folder):
    """What a relative link in a file of a folder becomes on the site."""

    def replacement(match):
        text, target, _ = match.groups()
        place = (folder / target).resolve()
        pages = (
            HERE / f"{page}.md" for page, file in FROM_TOP.items() if place == HERE.parent / file
        )
        place = next(pages, place)
        if place.is_file() and place.is_relative_to(HERE):
            inside = os.path.relpath(place, folder if folder.is_relative_to(HERE) else HERE)
            return match[0].replace(f"]({target}", f"]({inside}")
        if ADDRESSES["home"]:
            kind, inside = "tree" if place.is_dir() else "blob", place.relative_to(HERE.parent)
            return f"[{text}]({ADDRESSES['home']}/{kind}/main/{inside.as_posix()})"
        return text if place.is_dir() else f"[{text}](path:/{os.path.relpath(place, HERE)})"

    return replacement


def _describe(kind, interface):
    """Give methods the descriptions of what they implement, where numpydoc's checks look."""
    for name, said in vars(interface).items():
        own = vars(kind).get(name)
        if callable(own) or isinstance(own, property):
            own.__doc__ = own.__doc__ or said.__doc__


def _share_templates():
    """Have numpydoc compile its templates once. It makes an environment for each docstring."""
    from jinja2.sandbox import SandboxedEnvironment  # tests read this file without either
    from numpydoc import docscrape_sphinx

    templates = {}

    class Shared(SandboxedEnvironment):
        def get_template(self, name, parent=None, globals=None):
            key = name, type(self.loader)
            if key not in templates:
                templates[key] = super().get_template(name, parent, globals)
            return templates[key]

    docscrape_sphinx.SandboxedEnvironment = Shared


#: Entries of the sidebar, as the theme writes them: the page that is shown, and another one.
_SHOWN = (
    '<li class="toctree-l2 current active">'
    '<a aria-current="page" class="current reference internal" href="#">'
)
_OTHER = '<li class="toctree-l2"><a class="reference internal" href="{}.html">'


_sidebars = {}


def _share_sidebars(app, page, template, context, doctree):
    """Have the theme make a sidebar for each subject of the reference, and not for each page.

    The sidebars of a subject's pages differ in the entry that is marked. Making all of them took
    more than half of the time of a build, without the code of pages.
    """
    folder, _, name = page.rpartition("/")
    if folder != "reference/generated":
        return
    make, subject = context["generate_toctree_html"], context["parents"][-1]["link"]
    entry = _OTHER.format(name)

    def sidebar(*args, **kwargs):
        shared = _sidebars.get(subject, "")
        if shared.count(entry) == 1:
            return shared.replace(entry, _SHOWN)
        made = str(make(*args, **kwargs))
        if made.count(_SHOWN) == 1:
            _sidebars[subject] = made.replace(_SHOWN, entry)
        return made

    context["generate_toctree_html"] = sidebar


def _list_versions(app, error):
    """Write the file of the choice of a version, for a site that has an address."""
    if html_baseurl and error is None:
        versions = [{"name": release, "version": version, "url": html_baseurl, "preferred": True}]
        Path(app.outdir, "versions.json").write_text(json.dumps(versions), encoding="utf-8")


def setup(app):
    """Called by Sphinx."""
    _describe(nbta.TensorArray, ArrayInterface)
    app.connect("source-read", _adapt)
    _share_templates()
    app.connect("html-page-context", _share_sidebars, priority=900)  # after the theme's
    app.connect("build-finished", _list_versions)

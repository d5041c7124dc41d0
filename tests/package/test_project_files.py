"""Workflows, forms, recipe and citation agree with the package, and claim no made-up address."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml

import nbta
from nbta import cli

ROOT = Path(__file__).parents[2]
SETUP = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, TOOL = SETUP["project"], SETUP["tool"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*_*.yml"))
HOME = "https://example.org/someone/something"
SITE = "https://something.example.org/stable/"


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def parsed(path):
    return yaml.safe_load(Path(path).read_text(encoding="utf-8"))


def workflow(name):
    return parsed(ROOT / ".github" / "workflows" / f"{name}.yml")


def commands(found):
    """What the steps of a workflow run."""
    return [step["run"] for job in found["jobs"].values() for step in job["steps"] if "run" in step]


def module(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def pythons():
    """Those that the classifiers name."""
    found = (re.fullmatch(r".* :: Python :: (3\.\d+)", line) for line in PROJECT["classifiers"])
    return [match[1] for match in found if match]


home = module("home", ROOT / "packaging" / "home.py")


# Workflows.


def test_the_readmes_test_command_is_run_word_for_word():
    (command,) = re.findall(r"^pip install -e .*&& pytest.*$", text("README.md"), re.MULTILINE)
    assert command in commands(workflow("tests"))


def test_the_command_for_the_documentation_is_run_word_for_word():
    (command,) = re.findall(
        r"^pip install .*&& sphinx-build.*$", text("CONTRIBUTING.md"), re.MULTILINE
    )
    assert command in commands(workflow("docs"))


def test_workflows_check_what_ci_checks():
    """The style checks of .ci/run, and a sixteenth of the slow tests by the commit's hash."""
    script = text(".ci/run")
    parts = re.findall(r'^part "[^"]+" ((?:ruff|mypy|codespell).*)$', script, re.MULTILINE)
    assert len(parts) == 5
    assert set(parts) <= set(commands(workflow("tests")))
    (slow,) = re.findall(r"(pytest .*-m slow --part) ", script)
    assert any(command.startswith(slow) for command in commands(workflow("tests")))


def test_pythons_are_those_of_the_classifiers():
    matrix = workflow("tests")["jobs"]["quick"]["strategy"]["matrix"]
    assert matrix["python"] == pythons()
    assert PROJECT["requires-python"] == f">={pythons()[0]}"
    built = workflow("wheels")["jobs"]["wheels"]["env"]["CIBW_BUILD"]
    assert built.split() == [f"cp{version.replace('.', '')}-*" for version in pythons()]
    assert f"PYTHONS = {tuple(pythons())!r}".replace("'", '"') in text("noxfile.py")


def test_pythons_that_are_only_tried_are_ones_that_numba_names():
    """The newest that Numba has and the classifiers have not may fail."""
    named = metadata.metadata("numba").get_all("Classifier")
    (tried,) = workflow("tests")["jobs"]["quick"]["strategy"]["matrix"]["include"]
    assert tried["experimental"] is True
    assert tried["python"] not in pythons()
    assert f"Programming Language :: Python :: {tried['python']}" in named


def test_systems():
    systems = workflow("tests")["jobs"]["quick"]["strategy"]["matrix"]["os"]
    assert [name.partition("-")[0] for name in systems] == ["ubuntu", "macos", "windows"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_each_workflow_says_that_it_has_not_run(path):
    """Take the sentence out once it has; then this test wants the name in its list."""
    run = set()
    head = re.match(r"(#.*\n)+", path.read_text(encoding="utf-8"))[0]
    says = "has not run yet" in " ".join(head.replace("#", " ").split())
    assert says == (path.stem not in run)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_folders_and_extras_of_workflows_are_there(path):
    jobs = parsed(path)["jobs"].values()
    for command in commands(parsed(path)):
        for extra in re.findall(r"\.\[(\w+)\]", command):
            assert extra in PROJECT["optional-dependencies"]
    for job in jobs:
        folder = ROOT / job.get("defaults", {}).get("run", {}).get("working-directory", ".")
        assert folder.is_dir()
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"[\w-]+/[\w-]+@v[\d.]+", step["uses"])


def test_benchmarks_run_on_a_schedule():
    found = workflow("asv")
    ((schedule,),) = [found[True]["schedule"]]  # YAML reads "on" as a truth value
    assert len(schedule["cron"].split()) == 5
    assert any(command.startswith("asv run ") for command in commands(found))


# Forms.


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_forms_ask_by_ids_that_differ(path):
    form = parsed(path)
    assert {"name", "description", "body"} <= set(form)
    ids = [item["id"] for item in form["body"] if item["type"] != "markdown"]
    assert len(set(ids)) == len(ids) > 1
    required = [item for item in form["body"] if item.get("validations", {}).get("required")]
    assert required


@pytest.mark.parametrize("name", ["bug_report", "wrong_result"])
def test_reports_ask_for_what_commands_of_nbta_print(name, capsys):
    """For nbta info, for nbta doctor where there is one, and for no command that there is not."""
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    there = set(re.search(r"\{([\w,]+)\}", capsys.readouterr().out)[1].split(","))
    asked = set(re.findall(r"`nbta (\w+)`", text(f".github/ISSUE_TEMPLATE/{name}.yml")))
    assert asked <= there
    assert asked >= {"info", "doctor"} & there
    assert cli.main(["info"]) == 0
    assert nbta.__version__ in capsys.readouterr().out


def test_commands_of_hooks_are_installed_with_the_test_extra():
    extra = {re.match(r"[\w-]+", line)[0] for line in PROJECT["optional-dependencies"]["test"]}
    (repository,) = parsed(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        assert hook["language"] == "system"
        assert shlex.split(hook["entry"])[0] in extra


# Citation, recipe, archive.


def test_the_citation_is_of_this_version():
    citation = parsed(ROOT / "CITATION.cff")
    assert citation["version"] == nbta.__version__
    assert (citation["title"], citation["abstract"]) == (PROJECT["name"], PROJECT["description"])
    assert citation["license"] == PROJECT["license"]
    assert citation["keywords"] == PROJECT["keywords"]
    assert citation["authors"] == PROJECT["authors"]
    assert citation.get("repository-code", "") == TOOL["nbta"]["home"]
    assert citation.get("url", "") == TOOL["nbta"]["site"]


def test_the_recipe_needs_what_the_package_needs():
    recipe = parsed(ROOT / "packaging" / "conda" / "recipe.yaml")
    assert recipe["context"]["version"] == nbta.__version__
    run = [line.replace(" ", "") for line in recipe["requirements"]["run"]]
    assert run == [f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]]
    assert {"python >=3.11", "pip", *SETUP["build-system"]["requires"]} == set(
        recipe["requirements"]["host"]
    )
    scripts = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert recipe["about"].get("repository", "") == TOOL["nbta"]["home"]


def test_the_archive_of_sources_names_files_that_there_are():
    listed = TOOL["hatch"]["build"]["targets"]["sdist"]["include"]
    assert [name for name in listed if not (ROOT / name).exists()] == []
    patterns = ("*.md", "*.cff", "*.py", ".pre-commit-config.yaml", ".github", ".ci")
    assert {path.name for pattern in patterns for path in ROOT.glob(pattern)} <= set(listed)


def test_the_changelog_has_the_form_of_keep_a_changelog():
    """Each entry stands under a kind of change, and each kind once in a version, newest first."""
    said = text("CHANGELOG.md")
    versions = re.findall(r"^## (.*)$", said, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[[\w.]+\] - \d{4}-\d\d-\d\d", line) for line in versions[1:])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Performance"}
    for part in re.split(r"^## .*$", said, flags=re.MULTILINE)[1:]:
        before, *sections = re.split(r"^### ", part, flags=re.MULTILINE)
        assert "\n* " not in before, "an entry has no heading"
        names = [section.partition("\n")[0] for section in sections]
        assert set(names) <= kinds
        assert len(set(names)) == len(names)
        assert all("\n* " in section for section in sections)
    entries = re.split(r"\n\n|\n(?=\* )", said)
    long = [entry.partition("\n")[0] for entry in entries if entry[0] == "*" and len(entry) > 500]
    assert long == [], "an entry is a sentence or two; pages have the rest"


PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(
        path
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if not {"_build", "generated"} & set(path.parts)
    ),
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_pages_lead_somewhere(path):
    said = without_code(path.read_text(encoding="utf-8"))
    for target, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)", said):
        place = path.parent / target if target else path
        assert place.exists(), target
        if anchor:
            assert anchor in slugs(place.read_text(encoding="utf-8")), f"{target}#{anchor}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_addresses_of_pages_are_well_formed(path):
    said = without_code(path.read_text(encoding="utf-8"))
    for address in re.findall(r"\bhttps?:[^\s<>\"]*", said):
        assert re.fullmatch(r"https?://[\w-]+(\.[\w-]+)+(:\d+)?(/.*)?", address.split(")")[0]), (
            address
        )


def without_code(said):
    """A page without its blocks of code and words of code."""
    return re.sub(r"^(```+).*?^\1|`[^`\n]*`", "", said, flags=re.MULTILINE | re.DOTALL)


def slugs(said):
    """Anchors of a page's headings."""
    return {re.sub(r"[^\w -]", "", line).lower().replace(" ", "-") for line in headings(said)}


def test_a_broken_anchor_and_an_address_are_found():
    said = "# A b\n\n`[c](d)` ```x```\n\n```\n[e](f)\n```\n[g](#h)"
    assert re.findall(r"\]\(([^)]*)\)", without_code(said)) == ["#h"]
    assert slugs(said) == {"a-b"}


def headings(said):
    return re.findall(r"^#+ (.*)$", said, re.MULTILINE)


def test_contributing_follows_a_first_hour():
    said = text("CONTRIBUTING.md")
    setting_up = said.split("```")[1].split("\n")[1:-1]
    assert [setting_up[0][:14], setting_up[-1]] == ["python -m venv", "pytest -m smoke"]
    first = ["Run a test", "Find your way", "Make a change", "Check it"]
    then = ["The test suite", "Benchmarks", "Wheels", "Releases"]
    assert [name for name in headings(said) if name in {*first, *then}] == [*first, *then]
    assert "(docs/release_checklist.md)" in said


def test_what_contributing_tells_to_run_is_there():
    said = text("CONTRIBUTING.md") + text("docs/release_checklist.md")
    files = set(re.findall(r"\b(?:python|pytest) ((?:tests|docs|packaging)/[\w/]+\.py)", said))
    files |= set(re.findall(r"`((?:tests|packaging|docs|nbta|asv_bench)/[\w./]+)`", said))
    assert len(files) > 30
    made = re.compile(r".*/\.asv")  # by asv
    missing = [name for name in files if not (ROOT / name).exists() and not made.match(name)]
    assert missing == []
    for module in set(re.findall(r"python -m ((?:nbta|asv_bench)[\w.]*)", said)):
        assert importlib.util.find_spec(module), module
    folders = re.search(r"`tests` has a folder for each subject: (.*?)\.", said, re.DOTALL)[1]
    listed = set(re.findall(r"`(\w+)`", folders))
    there = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert listed == there - {"support"}


def test_spelling():
    """Of what people read; the whole tree is checked with the style."""
    pytest.importorskip("codespell_lib")
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "nbta" / "errors.py"]
    command = [sys.executable, "-m", "codespell_lib", *map(str, pages)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert done.returncode == 0


# The public home.


def test_nothing_is_claimed_while_there_is_no_home():
    if TOOL["nbta"]["home"]:
        pytest.skip("the project has a home")
    assert home.settings() == {"home": "", "site": ""}
    assert home.urls("", "") == home.edit_context("") == {}
    assert home.absolute(text("README.md"), "", nbta.__version__) == text("README.md")
    claims = re.compile(
        r"img\.shields\.io|badge\.svg|pypi\.org/p|anaconda\.org|github\.com/[\w-]+/nbta"
    )
    files = [*ROOT.glob("*.md"), ROOT / "CITATION.cff", *(ROOT / "docs").glob("*.md"), *WORKFLOWS]
    assert [path.name for path in files if claims.search(path.read_text("utf-8"))] == []


def with_home(folder, address, site=""):
    """A copy of what a build reads, whose project has the given home."""
    for path in (*ROOT.glob("*.md"), ROOT / "LICENSE", ROOT / "CITATION.cff"):
        shutil.copy(path, folder)
    for name in ("packaging", "docs", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("_build"))
    (folder / "nbta").mkdir()
    shutil.copy(ROOT / "nbta" / "__init__.py", folder / "nbta")
    said = text("pyproject.toml")
    for key, value in (("home", address), ("site", site)):
        said = re.sub(rf'^{key} = "(.*)"$', f'{key} = "{value}"', said, flags=re.MULTILINE)
    (folder / "pyproject.toml").write_text(said, encoding="utf-8")
    return folder


@pytest.fixture
def built_metadata(tmp_path):
    """The package's metadata for a home, as hatchling makes it."""
    core = pytest.importorskip("hatchling.metadata.core")
    plugins = pytest.importorskip("hatchling.plugin.manager")

    def make(address, site=""):
        folder = with_home(tmp_path, address, site)
        return core.ProjectMetadata(str(folder), plugins.PluginManager()).core

    return make


def test_metadata_without_a_home(built_metadata):
    found = built_metadata("")
    assert found.urls == {}
    assert found.readme == text("README.md")
    assert found.readme_content_type == "text/markdown"


def test_metadata_with_a_home(built_metadata):
    found = built_metadata(HOME, SITE)
    assert found.urls == {
        "Homepage": SITE,
        "Documentation": SITE,
        "Source": HOME,
        "Issues": f"{HOME}/issues",
        "Changelog": f"{SITE}changelog.html",
    }
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", found.readme, flags=re.DOTALL))
    assert links
    assert all(link.startswith(("https://", "http://", "#")) for link in links)
    assert f"({HOME}/blob/main/CONTRIBUTING.md)" in found.readme


def test_links_become_those_of_a_release():
    said = (
        "[a](docs/errors.md#b) [c](examples/) [d](https://x.org) [e](#f) `g[0](1)` [h](no/file.md)"
    )
    assert home.absolute(said, HOME, "1.2.0") == (
        f"[a]({HOME}/blob/v1.2.0/docs/errors.md#b) [c]({HOME}/tree/v1.2.0/examples/) "
        "[d](https://x.org) [e](#f) `g[0](1)` [h](no/file.md)"
    )
    picture = home.absolute("[![a](docs/figures/chart.svg)](docs/errors.md)", HOME, "1.2.0")
    raw, page = f"{HOME}/raw/v1.2.0/docs/figures/chart.svg", f"{HOME}/blob/v1.2.0/docs/errors.md"
    assert picture == f"[![a]({raw})]({page})"
    assert f"{HOME}/blob/main/docs" in home.absolute(said, HOME, "1.2.0.dev0")


@pytest.mark.parametrize(
    ("address", "site"),
    [("nbta", ""), (f"{HOME}/", ""), ("http://example.org/a/b", ""), ("", SITE), (HOME, SITE[:-1])],
)
def test_addresses_that_cannot_be(address, site, tmp_path):
    with pytest.raises(ValueError, match=r"\[tool.nbta\] (home|site) must be like"):
        home.settings(with_home(tmp_path, address, site))


@pytest.mark.parametrize("address", ["", HOME])
def test_pages_have_a_button_to_edit_them_where_there_is_a_home(address, tmp_path):
    site = SITE if address else ""
    conf = module("conf", with_home(tmp_path, address, site) / "docs" / "conf.py")
    assert conf.html_theme_options["use_edit_page_button"] == bool(address)
    assert conf.html_baseurl == site
    assert ("sphinx_sitemap" in conf.extensions) == bool(site)
    if not address:
        assert conf.html_context == {}
        assert "switcher" not in conf.html_theme_options
        return
    assert conf.html_theme_options["switcher"]["json_url"] == f"{SITE}versions.json"
    keys = ("github_url", "github_user", "github_repo", "github_version", "doc_path")
    assert "/".join([*(conf.html_context[key] for key in keys[:3]), "edit"]) == f"{HOME}/edit"
    assert [conf.html_context[key] for key in keys[3:]] == ["main", "docs"]


@pytest.mark.parametrize("address", ["", HOME])
def test_links_of_pages_to_files_outside_of_docs(address, tmp_path):
    docs = with_home(tmp_path, address) / "docs"
    conf = module("conf", docs / "conf.py")
    said = re.compile(r"\[([^]]+)\]\(([^)#]+)(#\w+)?\)")

    def shown(link):
        return said.sub(conf._link(docs), link)

    found = shown("[a](../packaging/hook.py)"), shown("[b](../examples)"), shown("[c](errors.md)")
    if address:
        assert found[:2] == (
            f"[a]({HOME}/blob/main/packaging/hook.py)",
            f"[b]({HOME}/tree/main/examples)",
        )
    else:
        assert found[:2] == ("[a](path:/../packaging/hook.py)", "b")
    assert found[2] == "[c](errors.md)"


@pytest.mark.slow
@pytest.mark.parametrize("address", ["", HOME])
def test_what_is_built_can_be_uploaded(address, tmp_path):
    """Archive and wheel, without kernels, as twine sees them."""
    pytest.importorskip("twine")
    copy = tmp_path / "copy"
    ignored = shutil.ignore_patterns(
        ".git", ".venv", ".nox", ".asv", "*_cache", "__pycache__", "_build", "dist", "objects"
    )
    shutil.copytree(ROOT, copy, ignore=ignored)
    said = re.sub(
        r'^home = ".*"$', f'home = "{address}"', text("pyproject.toml"), flags=re.MULTILINE
    )
    (copy / "pyproject.toml").write_text(said, encoding="utf-8")
    made = tmp_path / "made"
    environment = {**os.environ, "NBTA_BUILD_KERNELS": "0"}
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(made)]
    subprocess.run(command, cwd=copy, env=environment, check=True, timeout=300)
    files = sorted(map(str, made.iterdir()))
    assert [Path(file).suffix for file in files] == [".whl", ".gz"]
    command = [sys.executable, "-m", "twine", "check", "--strict", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("PASSED") == 2

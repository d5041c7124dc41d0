"""Make the site of ``asv publish`` work without a network: ``python offline.py``, after it.

asv's page loads scripts of others from the web. This gets them once, with npm's client, puts them
beside the page, and has the page load those.
"""

import re
import subprocess
import tarfile
import tempfile
from pathlib import Path

HTML = Path(__file__).parent / ".asv" / "html"
#: npm's packages, and their files by the names that asv's page has for them.
PACKAGES = {
    "jquery@3.3.1": {"jquery-3.3.1.min.js": "dist/jquery.min.js"},
    "flot@0.8.3": {
        "jquery.flot.min.js": "jquery.flot.js",
        "jquery.flot.time.min.js": "jquery.flot.time.js",
        "jquery.flot.selection.min.js": "jquery.flot.selection.js",
        "jquery.flot.categories.min.js": "jquery.flot.categories.js",
    },
    "flot-orderbars@1.0.0": {"jquery.flot.orderBars.js": "js/jquery.flot.orderBars.js"},
    "stupid-table-plugin@1.1.3": {"stupidtable.min.js": "stupidtable.min.js"},
    "blueimp-md5@2.19.0": {"md5.min.js": "js/md5.min.js"},
    "bootstrap@3.1.1": {
        "bootstrap.min.js": "dist/js/bootstrap.min.js",
        "bootstrap.min.css": "dist/css/bootstrap.min.css",
    },
}
#: A script or a style sheet of others, with the file's name.
ELSEWHERE = re.compile(r'<(script|link)\b[^>]*?\b(?:src|href)="https://[^"]*/([^"/]+)"[^>]*>')
HERE = {
    "script": '<script src="vendor/{}">',
    "link": '<link rel="stylesheet" href="vendor/{}">',
}


def fetch(package, files, place):
    """Put files of a package into a folder."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True)
        (packed,) = Path(folder).iterdir()
        with tarfile.open(packed) as archive:
            for name, path in files.items():
                place.joinpath(name).write_bytes(archive.extractfile(f"package/{path}").read())


def main():
    """Fetch what is not there yet, and change the page.

    Raises
    ------
    SystemExit
        If the page loads what `PACKAGES` does not have: another version of asv made it.
    """
    page, vendor = HTML / "index.html", HTML / "vendor"
    text = page.read_text()
    wanted = {name for _, name in ELSEWHERE.findall(text)}
    known = {name for files in PACKAGES.values() for name in files}
    if wanted - known:
        raise SystemExit(f"{page} loads {sorted(wanted - known)}, which PACKAGES does not have")
    vendor.mkdir(exist_ok=True)
    for package, files in PACKAGES.items():
        if wanted & files.keys():
            fetch(package, files, vendor)
    page.write_text(ELSEWHERE.sub(lambda found: HERE[found[1]].format(found[2]), text))


if __name__ == "__main__":
    main()

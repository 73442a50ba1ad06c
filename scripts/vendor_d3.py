"""Make the studio's one library: the parts of d3 that its page uses, bundled from the npm packages.

python scripts/vendor_d3.py            into src/dphmm/studio/static/vendor/
python scripts/vendor_d3.py FOLDER     somewhere else, to compare

It needs npm and a package index; nobody else does, since what it makes is committed.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

STATIC = Path(__file__).resolve().parent.parent / "src" / "dphmm" / "studio" / "static"
PACKAGES = {
    "d3": "7.9.2", "d3-array": "3.2.5", "d3-color": "3.1.1", "d3-dispatch": "3.0.2",
    "d3-drag": "3.0.1", "d3-ease": "3.0.2", "d3-force": "3.0.1", "d3-format": "3.1.3",
    "d3-interpolate": "3.0.2", "d3-path": "3.1.1", "d3-polygon": "3.0.2", "d3-quadtree": "3.0.2",
    "d3-scale": "4.0.3", "d3-selection": "3.0.1", "d3-shape": "3.2.1", "d3-timer": "3.0.2",
    "d3-transition": "3.0.2", "d3-zoom": "3.0.1",
}  # fmt: skip
"""Exact versions, so that the same file comes out tomorrow."""

BUNDLER = {"esbuild": "0.28.2"}
NOTE = """\
`d3.min.js` holds the parts of d3 {version} that the page uses, `LICENSE` their licences.
`python scripts/vendor_d3.py` made both, from packages as their authors published them: {packages}.
SHA-256 of `d3.min.js`: {digest}
"""


def used_names(static: Path = STATIC) -> list[str]:
    """What the page's modules take from d3."""
    sources = [path.read_text(encoding="utf-8") for path in sorted((static / "js").glob("*.js"))]
    return sorted({name for text in sources for name in re.findall(r"\bd3\s*\.(\w+)", text)})


def bundle(folder: Path) -> tuple[str, list[str]]:
    """The minified parts, and the packages that they come from."""
    names = used_names()
    # Selections get their method `transition` by the package's being there.
    entry = f'import "d3-transition";\nexport {{ {", ".join(names)} }} from "d3";\n'
    (folder / "entry.js").write_text(entry, encoding="utf-8")
    (folder / "package.json").write_text(json.dumps({"dependencies": PACKAGES | BUNDLER}))
    run(folder, "npm", "install", "--silent", "--no-audit", "--no-fund")
    flags = ("--bundle", "--minify", "--format=iife", "--global-name=d3", "--legal-comments=none")
    outs = ("--outfile=d3.min.js", "--metafile=meta.json", "--log-level=warning")
    run(folder, "node_modules/.bin/esbuild", "entry.js", *flags, *outs)
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    (made,) = meta["outputs"].values()
    paths = (re.fullmatch(r"node_modules/([^/]+)/.*", path) for path in made["inputs"])
    packages = sorted({path[1] for path in paths if path})
    return (folder / "d3.min.js").read_text(encoding="utf-8"), packages


def run(folder: Path, *command: str) -> None:
    """Run a program in a folder, or stop."""
    subprocess.run(command, cwd=folder, check=True)


def licences(folder: Path, packages: list[str]) -> str:
    """Every licence once, with the packages that it is of."""
    texts: dict[str, list[str]] = {}
    for name in packages:
        text = (folder / "node_modules" / name / "LICENSE").read_text(encoding="utf-8").strip()
        texts.setdefault(text, []).append(name)
    return "\n\n".join(f"{', '.join(names)}:\n\n{text}" for text, names in texts.items()) + "\n"


def main(target: Path) -> int:
    """Write the file, its licences and its note."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        script, packages = bundle(folder)
        versions = {
            name: json.loads((folder / "node_modules" / name / "package.json").read_text())[
                "version"
            ]
            for name in packages
        }
        # What is not pinned would be another one tomorrow.
        assert all(PACKAGES.get(name) == version for name, version in versions.items()), versions
        licence = licences(folder, packages)
    content = (
        f"// Parts of d3 {PACKAGES['d3']}; see LICENSE and README.md beside this file\n{script}"
    )
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    digest = hashlib.sha256(content.encode()).hexdigest()
    note = NOTE.format(version=PACKAGES["d3"], packages=listed, digest=digest)
    target.mkdir(parents=True, exist_ok=True)
    for name, text in (("d3.min.js", content), ("LICENSE", licence), ("README.md", note)):
        (target / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else STATIC / "vendor"))

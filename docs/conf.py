"""The site: `make docs` builds it into site/VERSION without asking anything from elsewhere.

The versions that stand beside each other are listed in site/versions.html, which every page links.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from myst_nb.sphinx_ext import OUTPUT_FOLDER  # noqa: E402

import dphmm  # noqa: E402
from scripts import reference, versions  # noqa: E402

project = "dphmm"
author = "the authors of dphmm"
version = release = dphmm.__version__
# myst_nb reads Markdown too, and runs the notebooks.
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["screenshots"]
templates_path = ["templates"]

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]

# Notebooks are kept without outputs and run while the site is built; a failing cell fails it.
# Not from a cache, which would not see that the library changed.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_ipywidgets_js: dict[str, dict[str, str]] = {}

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# The names that the code gives to long unions.
autodoc_type_aliases = {
    name: name
    for name in ("ArrayLike", "Exact", "FloatArray", "IntArray", "Mask", "Observations", "Start")
}
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
default_role = "code"  # docstrings are written with single backticks
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_use_rtype = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = f"dphmm {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(DOCS / "scorer.js")
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": f"dphmm {version}"},
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["versions"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copyright = "the authors of dphmm; Apache-2.0"


def calm_kernels() -> None:
    """Run notebooks apart from the builder's own IPython, and without its advice on stderr."""
    profile = Path(tempfile.mkdtemp()) / "profile_default"
    profile.mkdir()
    (profile / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 40\n")
    os.environ["IPYTHONDIR"] = str(profile.parent)


def write_reference(app: Any) -> None:
    """Make the reference pages before anything is read."""
    reference.write_pages(DOCS)


def write_texts(app: Any, fault: Exception | None) -> None:
    """Write the plain-text export and the list of versions when all pages stand.

    What myst_nb leaves beside them is removed: pages have copies of the pictures.
    """
    shutil.rmtree(Path(app.outdir).parent / OUTPUT_FOLDER, ignore_errors=True)
    if fault is None and app.builder.format == "html":
        reference.write_texts(DOCS, Path(app.outdir))
        if Path(app.outdir).name == version:
            versions.write_versions(Path(app.outdir).parent)


def mend_signatures(app: Any, page: str, template: str, context: dict[str, Any], _: object) -> None:
    """Say that the lines of a long signature are no list of terms, which they are written as."""
    if "body" in context:
        context["body"] = context["body"].replace(
            '<dl>\n<dd><em class="sig-param">',
            '<dl role="presentation">\n<dd><em class="sig-param">',
        )


def escape_marks(
    app: Any, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Keep |x| and * in docstrings what they are; examples are left alone."""
    in_example = False
    for number, line in enumerate(lines):
        in_example = bool(line.strip()) and (in_example or line.lstrip().startswith(">>>"))
        if not in_example:
            lines[number] = re.sub(r"([|*])(?=[^`]*(?:`[^`]*`[^`]*)*$)", r"\\\1", line)


def setup(app: Any) -> None:
    """What Sphinx calls."""
    calm_kernels()
    app.connect("builder-inited", write_reference, priority=0)
    # Before napoleon, which makes definition lists with asterisks of its own.
    app.connect("autodoc-process-docstring", escape_marks, priority=100)
    app.connect("html-page-context", mend_signatures)
    app.connect("build-finished", write_texts)

"""How `make docs` builds the site: every document of the project, the interface from its docstrings, links checked.

The root of the sources is the project's own, so that a link leads to the same place on the site and in the repository.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))

project = "cubecast"
author = "cubecast contributors"
root_doc = "docs/index"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton"]

include_patterns = ["*.md", "docs/**.md", "npm/README.md"]
exclude_patterns = [".*", "README.md", "out", "src", "tests", "bench", "examples", "deploy", "scripts"]
myst_heading_anchors = 3

# Docstrings name things in single backquotes, as the documents do: a link where the name is known, code elsewhere.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
maximum_signature_line_length = 90
add_module_names = False

html_theme = "furo"
html_title = "cubecast"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_additional_pages = {"index": "start.html"}
templates_path = ["templates"]
html_copy_source = False
html_show_copyright = False
copybutton_prompt_text = "$ "

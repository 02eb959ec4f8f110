"""Settings of the documentation pages."""

import isocost

project = "isocost"
author = copyright = "The isocost developers"
release = isocost.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "isocost"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
myst_heading_anchors = 3

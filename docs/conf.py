"""How the documents are built: MyST Markdown, Furo, and every warning an error."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from django_once import __version__

project = "django-once"
author = "The django-once authors"
project_copyright = author
release = version = __version__

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nitpicky = True

html_theme = "furo"
html_title = "django-once"
html_show_sphinx = False
html_copy_source = False

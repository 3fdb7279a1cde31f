#!/usr/bin/env python
"""What the bench's workers are started with, as a project's are."""

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    os.environ["DJANGO_SETTINGS_MODULE"] = "bench.project.settings"
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)

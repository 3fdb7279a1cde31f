"""The shell's door: `manage.py once` and its verbs."""

"""The tasks whose jobs are counted."""

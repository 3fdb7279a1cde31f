"""The commands of dev.py, one file each."""

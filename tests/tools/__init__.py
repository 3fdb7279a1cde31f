"""The tests of dev.py and its tools."""

"""Servers for the tests: found running, started from binaries that are here, or fetched."""

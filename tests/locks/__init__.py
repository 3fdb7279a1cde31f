"""Locks: taken, renewed, lost and released, in threads and processes, on every database."""

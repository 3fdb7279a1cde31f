"""Loops: what stays awake between two facts, and the life of one attempt."""

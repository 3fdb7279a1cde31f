"""Wires: hints that work may wait. They may be lost or doubled; nothing depends on one arriving."""

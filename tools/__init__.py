"""The parts of dev.py: interpreters, environments, servers, targets, and its commands.

Standard library only, and nothing newer than Python 3.8: whatever interpreter a
machine calls python3 must be able to say what is missing.
"""

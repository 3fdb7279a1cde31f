"""Schedules at work: read from rows, fired, dispatched, edited, run by hand, and audited."""

# What is announced when a schedule changed: schedulers look when the next one is due.
SCHEDULES = ":schedules"

"""Schedules: the rule in time, the firing of it, the permits, and what people see."""

"""Databases of a run's own: durable, and stopped in any way that a fault asks for."""

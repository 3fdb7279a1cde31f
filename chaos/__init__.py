"""Chaos: a project under load, faults by a seed, and books that are audited from outside."""

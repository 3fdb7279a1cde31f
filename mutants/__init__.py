"""Mutants: the package with one guard taken away, and the tests that must notice."""

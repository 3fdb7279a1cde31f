"""Races: real threads and processes meet in a real database, in both orders."""

"""Tests of series: keys, generations and successors."""

"""Tests of chaos: its books must go red, its proxy must cut where it says, its plan must repeat."""

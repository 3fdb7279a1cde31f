"""Real workers, started as people start them, on the database of the tests."""

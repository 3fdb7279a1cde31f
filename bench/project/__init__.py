"""A project that does nothing but run the jobs of the bench."""

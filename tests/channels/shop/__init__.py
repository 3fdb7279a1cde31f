"""A shop whose tables are heard: the models, channels and listeners of the tests."""

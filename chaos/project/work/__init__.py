"""The work: one file per kind, each with its tasks and what is drawn for them."""

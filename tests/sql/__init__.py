"""The statements of the protocol: one suite for every database."""

"""Bodies that are asked to end, that leave a mess, and whose processes are killed."""

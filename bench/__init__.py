"""Speed, measured beside the raw limit of the same database in the same run."""

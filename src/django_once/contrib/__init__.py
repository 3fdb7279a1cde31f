"""Optional apps: names of other libraries, and what exports numbers elsewhere."""

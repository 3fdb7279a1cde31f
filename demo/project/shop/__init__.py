"""A shop: orders come in, are charged, and get a receipt by e-mail."""

"""The demo: a small shop at work while its processes are killed, and its books audited after."""

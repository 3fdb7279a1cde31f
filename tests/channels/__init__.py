"""Channels: declared, heard, told and handled, on every database."""

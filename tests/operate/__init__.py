"""Seeing and steering: what is shown, what is hidden, what is measured."""

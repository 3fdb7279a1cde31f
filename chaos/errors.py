"""What the person at the keyboard must see to."""


class Refusal(Exception):
    """Something is missing or cannot be meant."""

"""What the bench refuses, as sentences for the person at the keyboard."""


class Refusal(Exception):
    """Something that must be seen to before anything can be measured."""

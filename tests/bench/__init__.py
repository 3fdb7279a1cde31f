"""The bench itself: small runs of it end, and say what was so."""

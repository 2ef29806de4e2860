"""Verbs about copies: which a run would use, what they are worth, and making them."""

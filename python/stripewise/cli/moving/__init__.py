"""Verbs that move data: apply, migrate, mover."""

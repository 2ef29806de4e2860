"""Verbs that decide and show placements: plan, show."""

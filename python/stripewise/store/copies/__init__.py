"""Copies of plain files in a store: replicas of what programs read, beside a file that stays where it is."""

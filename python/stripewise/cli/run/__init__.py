"""Verbs around the run of a program: run, collect, tune, doctor."""

"""The command line: one file per verb, `main` puts them together."""

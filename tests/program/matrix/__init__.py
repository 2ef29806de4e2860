"""The matrix of real programs: cases in families, an engine that compares three places, and the table of what came out."""

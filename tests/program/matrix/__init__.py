"""The matrix of real programs: cases in families, an engine that compares three places, a record of what came out."""

"""Random instances and a portfolio of simple heuristics: what the policy `best` is held against.

Nothing here uses the policy's code: a mistake that both shared would be seen by neither.
"""

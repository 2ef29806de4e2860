"""`stripewise model`: the verb, its table and pictures, its sweeps."""

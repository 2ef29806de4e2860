"""How alike two runs are (thesis, section 2.7.2)."""

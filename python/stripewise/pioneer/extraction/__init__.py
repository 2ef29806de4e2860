"""From a trace to its generic workload path (thesis, sections 2.6.1 and 2.6.2)."""

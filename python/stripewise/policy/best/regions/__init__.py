"""The search over regions: cuts, choices, assignment."""

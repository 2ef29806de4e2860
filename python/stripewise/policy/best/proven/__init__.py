"""What no layout undercuts."""

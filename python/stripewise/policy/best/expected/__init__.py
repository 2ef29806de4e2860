"""What the next run is expected to ask for."""

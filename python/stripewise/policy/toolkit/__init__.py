"""What policies share: requests by region, space on targets, stripes, prices, windows, and the end of a plan."""

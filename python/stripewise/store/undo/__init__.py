"""Making every file of a store plain again, and removing the store."""

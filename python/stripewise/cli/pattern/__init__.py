"""The verb `patterns`."""

"""A store whose directory, or whose targets' directories, were moved by hand."""

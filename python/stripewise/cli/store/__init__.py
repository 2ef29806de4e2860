"""`stripewise store`: a file for each group of its verbs."""

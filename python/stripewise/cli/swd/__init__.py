"""`stripewise swd`: a file for each of its verbs."""

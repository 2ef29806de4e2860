"""`stripewise engine`: how MPI-IO should touch the files of a run."""

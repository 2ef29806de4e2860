"""IO-Engine: how MPI-IO should touch a file, by the thesis's rules (crates/engine) and by price."""

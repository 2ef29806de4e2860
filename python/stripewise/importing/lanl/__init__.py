"""Text of LANL-Trace, or of `ltrace -S -tt -T`: MPI-IO calls with the system calls that they make inside."""

"""Running programs: what they are linked with, their environment, what a run achieved, and runs in a circle."""

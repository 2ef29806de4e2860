"""Text of `strace -f -ttt -T -y`: lines become calls, calls change descriptors, and those on files become rows."""

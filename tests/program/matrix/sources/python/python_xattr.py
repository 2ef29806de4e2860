"""Extended attributes."""

import os

S = os.environ["S"]
T = os.environ["T"]

open("a", "w").close()
os.setxattr("a", "user.k", b"v")
print(os.listxattr("a"), os.getxattr("a", "user.k"))
os.removexattr("a", "user.k")
print(os.listxattr("a"))

"""Darshan logs: libdarshan-util reads them in a process of its own (`child`), whose arrays `reader` makes rows of."""

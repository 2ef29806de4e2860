"""From a profile to paths of any size (thesis, section 2.6.4), by statistics or symbolic patterns."""

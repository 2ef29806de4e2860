"""From a generic workload path to its profile (thesis, section 2.6.3), which people read and edit."""

"""PIONEER (thesis, chapter 2): workloads described, made at any size, played, compared; docs/traces/pioneer.md."""

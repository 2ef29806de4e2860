//! What a generic workload path is made and characterised with (thesis, sections 2.6.2 and 2.6.3), where arrays of Python alone are too slow.

pub mod shadow;

//! The limits of stores and layouts as constants of the module, so that Python checks against the very numbers that the store does.

use pyo3::prelude::*;
use stripewise_layout::{GRANULE, MAX_LOGICAL, MAX_REGIONS};
use stripewise_store::bin::MAX_RULES;
use stripewise_target::kind::MAX_TARGETS;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("GRANULE", GRANULE)?;
    module.add("MAX_LOGICAL", MAX_LOGICAL)?;
    module.add("MAX_REGIONS", MAX_REGIONS)?;
    module.add("MAX_RULES", MAX_RULES)?;
    module.add("MAX_TARGETS", MAX_TARGETS)
}

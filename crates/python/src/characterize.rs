//! Characteristics of generic workload paths for Python.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stripewise_pioneer::characteristics::shadow::matched;

/// Adds what is here to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(shadow_match, module)?)
}

/// For each number of the root the place of the child's that it is matched with, -1 for none, as bytes of i64.
#[pyfunction]
fn shadow_match<'py>(py: Python<'py>, root: PyBuffer<u64>, child: PyBuffer<u64>) -> PyResult<Bound<'py, PyBytes>> {
    let (root, child) = (root.to_vec(py)?, child.to_vec(py)?);
    let found: Vec<u8> = py.detach(|| {
        let place = |of: &Option<usize>| of.and_then(|of| i64::try_from(of).ok()).unwrap_or(-1).to_le_bytes();
        matched(&root, &child).iter().flat_map(place).collect()
    });
    Ok(PyBytes::new(py, &found))
}

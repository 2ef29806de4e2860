//! The exceptions of the binding. Each kind of store error is one class, which also derives from the standard exception that fits.

use pyo3::exceptions::{PyBlockingIOError, PyException, PyFileExistsError, PyFileNotFoundError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use stripewise_store::admin::StoreError;

/// (class name, kind of error as [`StoreError::kind`] spells it).
const CLASSES: [(&str, &str); 9] = [
    ("NotFound", "not_found"),
    ("Invalid", "invalid"),
    ("Damaged", "damaged"),
    ("NewerVersion", "newer_version"),
    ("InUse", "in_use"),
    ("NoSpace", "no_space"),
    ("Exists", "exists"),
    ("Stopped", "stopped"),
    ("InputOutput", "io"),
];

static BASE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static KINDS: PyOnceLock<Vec<Py<PyType>>> = PyOnceLock::new();

fn new_class<'py>(py: Python<'py>, name: &str, bases: Bound<'py, PyTuple>) -> PyResult<Py<PyType>> {
    let names = PyDict::new(py);
    names.set_item("__module__", "stripewise._stripewise")?;
    names.set_item("__doc__", "An error of the native module; its text is one sentence that names the file and the cure.")?;
    Ok(py.get_type::<PyType>().call1((name, bases, names))?.cast_into::<PyType>().map_err(PyErr::from)?.unbind())
}

fn base<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyType>> {
    let class = BASE.get_or_try_init(py, || new_class(py, "StripewiseError", PyTuple::new(py, [py.get_type::<PyException>()])?))?;
    Ok(class.bind(py))
}

fn kinds(py: Python<'_>) -> PyResult<&Vec<Py<PyType>>> {
    KINDS.get_or_try_init(py, || {
        let base = base(py)?;
        let standard = |kind: &str| match kind {
            "not_found" => py.get_type::<PyFileNotFoundError>(),
            "invalid" => py.get_type::<PyValueError>(),
            "in_use" => py.get_type::<PyBlockingIOError>(),
            "exists" => py.get_type::<PyFileExistsError>(),
            "damaged" | "newer_version" => py.get_type::<PyRuntimeError>(),
            _ => py.get_type::<PyOSError>(),
        };
        CLASSES.iter().map(|(name, kind)| new_class(py, name, PyTuple::new(py, [base.clone(), standard(kind)])?)).collect()
    })
}

/// The exception of a kind of error with its sentence.
pub fn raise(kind: &str, message: String) -> PyErr {
    Python::attach(|py| {
        let place = CLASSES.iter().position(|(_, k)| *k == kind);
        let class = match kinds(py) {
            Ok(classes) => place.and_then(|i| classes.get(i)),
            Err(e) => return e,
        };
        match (class, base(py)) {
            (Some(class), _) => PyErr::from_type(class.bind(py).clone(), message),
            (None, Ok(base)) => PyErr::from_type(base.clone(), message),
            (None, Err(e)) => e,
        }
    })
}

/// The exception of a store error.
pub fn from_store(e: StoreError) -> PyErr {
    raise(e.kind(), e.to_string())
}

/// Adds the classes to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("StripewiseError", base(py)?)?;
    for ((name, _), class) in CLASSES.iter().zip(kinds(py)?) {
        module.add(*name, class.bind(py))?;
    }
    Ok(())
}

//! The exceptions of the binding: the classes of `stripewise.errors`.

use pyo3::prelude::*;
use stripewise_store::admin::StoreError;

/// The class for a kind of error as [`StoreError::kind`] spells it.
pub fn class_of(kind: &str) -> &'static str {
    match kind {
        "not_found" => "NotFoundError",
        "invalid" => "InvalidError",
        "damaged" => "DamagedError",
        "newer_version" => "NewerVersionError",
        "in_use" => "InUseError",
        "no_space" => "NoSpaceError",
        "exists" => "ExistsError",
        "stopped" => "StoppedError",
        "io" => "InputOutputError",
        _ => "StoreError",
    }
}

fn raised(class: &str, message: String) -> PyErr {
    Python::attach(|py| {
        let made = py.import("stripewise.errors").and_then(|errors| errors.getattr(class)).and_then(|class| class.call1((message,)));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// The exception of a store error.
pub fn from_store(e: StoreError) -> PyErr {
    raised(class_of(e.kind()), e.to_string())
}

/// The exception of arguments that no computation takes: tables that do not fit together, numbers out of range.
pub fn invalid(reason: String) -> PyErr {
    raised("InvalidError", reason)
}

/// The exception of what is wrong in a trace or in a description of requests.
pub fn of_workload(e: impl ToString) -> PyErr {
    raised("WorkloadError", e.to_string())
}

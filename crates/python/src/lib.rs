//! `stripewise._stripewise`: the one binding. JSON strings in and out, errors as one sentence each, the GIL released while working.

use pyo3::prelude::*;

mod assign;
mod blocks;
mod characterize;
mod copies;
mod engine;
mod errors;
mod limits;
mod mover;
mod pattern;
mod pricing;
mod probe;
mod sim;
mod store;
mod swd;
mod synthesis;
mod trace;
mod transfer;
mod view;
mod workpath;

#[pymodule]
fn _stripewise(module: &Bound<'_, PyModule>) -> PyResult<()> {
    limits::register(module)?;
    store::register(module)?;
    mover::register(module)?;
    transfer::register(module)?;
    copies::register(module)?;
    characterize::register(module)?;
    pattern::register(module)?;
    pricing::register(module)?;
    probe::register(module)?;
    synthesis::register(module)?;
    view::register(module)?;
    workpath::register(module)?;
    module.add_function(wrap_pyfunction!(assign::assign, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::block_export, module)?)?;
    module.add_function(wrap_pyfunction!(blocks::block_statistics, module)?)?;
    module.add_function(wrap_pyfunction!(engine::engine_board, module)?)?;
    module.add_function(wrap_pyfunction!(engine::engine_board_told, module)?)?;
    module.add_function(wrap_pyfunction!(engine::engine_rules, module)?)?;
    module.add_class::<sim::TrialsHandle>()?;
    module.add_function(wrap_pyfunction!(sim::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(sim::simulate_requests, module)?)?;
    module.add_function(wrap_pyfunction!(sim::workload_info, module)?)?;
    module.add_function(wrap_pyfunction!(sim::workload_requests, module)?)?;
    module.add_function(wrap_pyfunction!(swd::swd_amplification, module)?)?;
    module.add_function(wrap_pyfunction!(swd::swd_map, module)?)?;
    module.add_function(wrap_pyfunction!(swd::swd_simulate, module)?)?;
    module.add_function(wrap_pyfunction!(trace::collect, module)?)
}

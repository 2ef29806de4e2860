//! A check that is under way.

use super::findings::{Finding, Report, Severity};
use crate::admin::store::Store;

/// A check that is under way.
pub struct Check<'a> {
    pub store: &'a Store<'a>,
    /// Whether to mend.
    pub repair: bool,
    /// Whether no program uses the store.
    pub idle: bool,
    /// Whether each target's directory is what it should be.
    pub sound: Vec<bool>,
    /// What was found so far.
    pub report: Report,
}

impl Check<'_> {
    /// Adds a finding about a file.
    pub fn found(&mut self, severity: Severity, code: &'static str, id: u64, message: String, cure: &str, repaired: bool) {
        self.report.add(Finding::new(severity, code, message, cure).of_file(id).mended(repaired));
    }
}

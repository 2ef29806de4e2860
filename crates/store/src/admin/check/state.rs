//! A check that is under way.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::findings::{Finding, Report, Severity};
use crate::admin::info::links_in;
use crate::admin::store::Store;

/// Of links beside files whose name is gone so many are remembered.
const LINKS_MAX: usize = 100_000;

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
    /// Links to files of the store in directories that were looked through for files whose name is gone.
    pub links: BTreeMap<PathBuf, BTreeMap<u64, PathBuf>>,
}

impl Check<'_> {
    /// Adds a finding about a file.
    pub fn found(&mut self, severity: Severity, code: &'static str, id: u64, message: String, cure: &str, repaired: bool) {
        self.report.add(Finding::new(severity, code, message, cure).of_file(id).mended(repaired));
    }

    /// A link to file `id` in the directory of `name`, which it had once: a file that is renamed without the library stays near, most often. Each directory is
    /// read once, however many files have lost their name there; one that cannot be read tells nothing. The names are whoever's the files are, so no more
    /// links are remembered than a large directory has.
    pub fn link_beside(&mut self, name: &Path, id: u64) -> Option<PathBuf> {
        let dir = name.parent()?;
        if !self.links.contains_key(dir) {
            if self.links.values().map(BTreeMap::len).sum::<usize>() > LINKS_MAX {
                return None;
            }
            self.links.insert(dir.to_path_buf(), links_in(self.store, dir).unwrap_or_default());
        }
        self.links.get(dir)?.get(&id).cloned()
    }
}

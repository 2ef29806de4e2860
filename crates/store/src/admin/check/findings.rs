//! What a check finds: one record per fact, with what to do about it.

use serde::Serialize;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Info,
    /// Untidy or unsafe, no byte of a file is affected.
    Warning,
    /// A promise of the store is broken.
    Error,
}

/// One finding.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Stable name of the kind of finding.
    pub code: &'static str,
    /// File id, 16 hexadecimal digits.
    pub file: Option<String>,
    /// The path that is concerned.
    pub path: Option<String>,
    /// Name of the target.
    pub target: Option<String>,
    /// One sentence.
    pub message: String,
    /// What to do.
    pub cure: String,
    /// Whether `--repair` mended it in this run.
    pub repaired: bool,
}

/// What a check was asked to do.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Mend what can be mended without losing a byte that anybody wrote durably.
    pub repair: bool,
    /// With repair: also remove objects that no file owns.
    pub purge: bool,
}

/// The result of a check.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Everything found.
    pub findings: Vec<Finding>,
    /// Files checked.
    pub files: usize,
    /// Objects checked.
    pub objects: usize,
    /// Bytes of data in live slices.
    pub data_bytes: u64,
    /// Findings of severity error that stand.
    pub errors: usize,
    /// Findings of severity warning that stand.
    pub warnings: usize,
    /// Findings that were mended.
    pub mended: usize,
    /// Errors and warnings as sentences with their cure, mended ones included.
    pub problems: Vec<String>,
    /// Whether everything in `problems` was mended.
    pub repaired: bool,
}

impl Report {
    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Fills in the counts and sentences.
    pub fn sum_up(&mut self) {
        let stands = |s: Severity| self.findings.iter().filter(|f| f.severity == s && !f.repaired).count();
        self.errors = stands(Severity::Error);
        self.warnings = stands(Severity::Warning);
        self.mended = self.findings.iter().filter(|f| f.repaired).count();
        let problems = self.findings.iter().filter(|f| f.severity > Severity::Info);
        self.problems = problems.map(|f| if f.repaired { format!("{} (mended)", f.message) } else { format!("{}; {}", f.message, f.cure) }).collect();
        self.repaired = !self.problems.is_empty() && self.errors + self.warnings == 0;
    }
}

impl Finding {
    /// An unrepaired finding.
    pub fn new(severity: Severity, code: &'static str, message: String, cure: &str) -> Self {
        Self { severity, code, file: None, path: None, target: None, message, cure: cure.to_string(), repaired: false }
    }

    /// With the file's id.
    #[must_use]
    pub fn of_file(mut self, id: u64) -> Self {
        self.file = Some(crate::admin::ids::id_text(id));
        self
    }

    /// With the path.
    #[must_use]
    pub fn at(mut self, path: &std::path::Path) -> Self {
        self.path = Some(path.to_string_lossy().into_owned());
        self
    }

    /// With the target's name.
    #[must_use]
    pub fn on(mut self, target: &str) -> Self {
        self.target = Some(target.to_string());
        self
    }

    /// Marked as mended.
    #[must_use]
    pub fn mended(mut self, done: bool) -> Self {
        self.repaired = done;
        self
    }
}

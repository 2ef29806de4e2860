//! Lines with their numbers, of any file or pipe, each bounded: a file without line ends must not fill the memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::Error;

/// No format's line is near this.
const LINE_BYTES_MAX: u64 = 1 << 16;
const BUFFER_BYTES: usize = 1 << 18;

pub(super) struct Lines {
    input: Box<dyn BufRead + Send>,
    name: String,
    number: u64,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Lines, Error> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| Error::Trace(format!("{name}: cannot be opened ({error}); check the path")))?;
        Ok(Lines::of(Box::new(BufReader::with_capacity(BUFFER_BYTES, file)), name))
    }

    pub(super) fn of(input: Box<dyn BufRead + Send>, name: String) -> Lines {
        Lines { input, name, number: 0 }
    }

    /// The error of a line.
    pub(super) fn error(&self, number: u64, sentence: &str) -> Error {
        Error::Trace(format!("{}: line {number}: {sentence}", self.name))
    }

    /// The error of the whole file.
    pub(super) fn error_of_all(&self, sentence: &str) -> Error {
        Error::Trace(format!("{}: {sentence}", self.name))
    }

    /// The next line that is neither empty nor a comment (`#`), with its number.
    pub(super) fn next(&mut self) -> Result<Option<(u64, String)>, Error> {
        loop {
            let mut bytes = Vec::with_capacity(96);
            let read = self.input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes);
            let length = read.map_err(|error| self.error_of_all(&format!("cannot be read ({error}); check the file and its device")))?;
            if length == 0 {
                return Ok(None);
            }
            self.number += 1;
            if bytes.starts_with(&[0x1f, 0x8b]) && self.number == 1 {
                return Err(self.error_of_all("is compressed with gzip; decompress it first (gunzip)"));
            }
            if bytes.last() != Some(&b'\n') && length as u64 == LINE_BYTES_MAX {
                return Err(self.error(self.number, "is longer than 64 KiB; this is not a trace of a known format"));
            }
            let Ok(text) = String::from_utf8(bytes) else {
                return Err(self.error(self.number, "is not text; this is not a trace of a known format"));
            };
            let text = text.trim();
            if !text.is_empty() && !text.starts_with('#') {
                return Ok(Some((self.number, text.to_owned())));
            }
        }
    }
}

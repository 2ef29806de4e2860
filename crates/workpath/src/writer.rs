//! Writing a path: nodes one after the other as they are made, tables and header at the end, so that ten million requests need no memory.

use std::io::{self, Seek, SeekFrom, Write};

use stripewise_checksum::crc32c_without;

use crate::format::{CRC_AT, HEADER_BYTES, Header, tables_bytes};
use crate::node::Node;
use crate::tables::Tables;

/// A path that is being written.
pub struct PathWriter<W: Write + Seek> {
    out: W,
    nodes: u64,
}

impl<W: Write + Seek> PathWriter<W> {
    /// Begins at the begin of `out`; give a buffered one.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&[0; HEADER_BYTES])?;
        Ok(Self { out, nodes: 0 })
    }

    /// Appends a node; a loop stands before its body, and says how many nodes that has.
    ///
    /// # Errors
    /// Those of `out`, and InvalidInput for a group beyond the last number.
    pub fn node(&mut self, node: &Node) -> io::Result<()> {
        let bytes = node.bytes().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a group's number is beyond 239"))?;
        self.nodes += 1;
        self.out.write_all(&bytes)
    }

    /// Writes tables and header. Nothing is checked here: read what was written (`Path::parse`) to know that it is one.
    ///
    /// # Errors
    /// Those of `out`, and InvalidInput where a table is too long for its header.
    pub fn finish(mut self, tables: &Tables, requests_of_root: u64) -> io::Result<W> {
        let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "more entries than a path can have");
        let nodes = u32::try_from(self.nodes).map_err(|_| too_long())?;
        let (bytes, counts) = tables_bytes(tables).ok_or_else(too_long)?;
        self.out.write_all(&bytes)?;
        let header = Header { nodes, counts, processes: tables.processes, seed: tables.seed, requests: requests_of_root };
        let mut head = header.bytes().ok_or_else(too_long)?;
        let sum = crc32c_without(&head, CRC_AT).to_le_bytes();
        if let Some(place) = head.get_mut(CRC_AT..CRC_AT + sum.len()) {
            place.copy_from_slice(&sum);
        }
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&head)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

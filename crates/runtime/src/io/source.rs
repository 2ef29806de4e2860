//! Where the bytes of a request are: between the gate, which says which layout is in force, and the operations on objects. Today that is the file's home.

use crate::base::sys::Sys;
use crate::file::File;
use crate::gate::Passed;
use crate::store::OpenObject;
use stripewise_layout::{Extents, Logical, Piece, View};

/// What a request is cut by, and where its objects are.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    file: &'static File,
    view: &'a View<'static>,
}

impl<'a> Source<'a> {
    /// The regions of the layout in force.
    #[inline]
    pub const fn home(file: &'static File, passed: &'a Passed) -> Self {
        Self { file, view: &passed.loaded.view }
    }

    pub const fn file(&self) -> &'static File {
        self.file
    }

    /// The run of one object that the request is, as most are.
    #[inline(always)]
    pub fn single(&self, at: u64, len: u64) -> Option<Piece> {
        self.view.single(Logical(at), len)
    }

    /// The same for one of several runs that continue each other in the object.
    pub fn joined(&self, at: u64, len: u64) -> Option<Piece> {
        self.view.pieces(Logical(at), len).next().filter(|piece| piece.len == len)
    }

    /// What the request has on each target, window by window.
    #[inline]
    pub fn extents(&self, at: u64, len: u64) -> Extents<'a> {
        self.view.extents(Logical(at), len)
    }

    /// An object that holds some of it.
    ///
    /// # Errors
    /// `EIO` for one that is missing, and those of opening it.
    #[inline(always)]
    pub fn object(&self, target: u32, plane: u32) -> Sys<OpenObject> {
        self.file.object(target, plane)
    }
}

//! How the programs of the test take the steps of a cut and of an extension.

use std::collections::BTreeSet;
use stripewise_layout::{Layout, View};
use stripewise_store::admin::Store;
use stripewise_store::admin::medium::*;
use stripewise_store::ctl::Ctl;
use stripewise_store::sizing::{Cutter, Extender, Written};

use crate::interleaved::common::ID;
use crate::interleaved::program::Program;

pub struct Cut<'a, 'p> {
    pub p: &'a mut Program,
    pub store: &'a Store<'p>,
    pub ctl: Ctl,
    pub at: Option<u64>,
    pub layout: Option<Layout>,
    /// Objects that are cut before it is killed.
    pub most: usize,
    pub has_cut: bool,
}

impl Cutter for Cut<'_, '_> {
    type Error = ();
    type Words = Ctl;
    fn words(&self) -> Ctl {
        self.ctl
    }
    fn drain(&mut self) -> Result<(), ()> {
        self.p.finish_all(self.store, self.ctl);
        let at = self.at.unwrap_or(self.ctl.size());
        if !self.p.turn(self.store, self.ctl, at, stripewise_layout::MAX_LOGICAL - at) {
            return Err(());
        }
        self.layout = Some(self.p.current(self.store, self.ctl));
        Ok(())
    }
    fn trim(&mut self, size: u64) -> Result<(), ()> {
        let bytes = self.layout.as_ref().unwrap().encode().unwrap();
        let view = View::parse(&bytes).unwrap();
        let mut objects = BTreeSet::new();
        view.first_bytes(|t, p, _| {
            objects.insert((t, p));
        });
        for (t, p) in objects {
            let path = self.store.object(t, ID, p).unwrap();
            let Some(stat) = self.p.disk.stat(&path).unwrap() else { continue };
            let end = view.end_with_copies(t, p, size);
            if stat.size > end {
                if self.most == 0 {
                    return Err(());
                }
                self.most -= 1;
                self.p.disk.open(&path, Open::Write).unwrap().set_len(end).unwrap();
                self.has_cut = true;
            }
        }
        Ok(())
    }
    fn has_cut(&self) -> bool {
        self.has_cut
    }
}

pub struct Ext<'a, 'p> {
    pub p: &'a mut Program,
    pub store: &'a Store<'p>,
    pub layout: Layout,
    pub size: u64,
    pub at: u64,
    pub bytes: Vec<u8>,
    pub end: u64,
}

impl Extender for Ext<'_, '_> {
    type Error = ();
    fn make(&mut self, to: u64) -> Result<(), ()> {
        self.p.make(self.store, &self.layout, self.size, to);
        Ok(())
    }
    fn is_alive(&mut self, line: usize) -> bool {
        self.p.alive(line)
    }
    fn write(&mut self) -> Written {
        self.p.write(self.store, &self.layout, self.at, &self.bytes);
        Written { reached: self.end, leaves_bytes: false }
    }
}

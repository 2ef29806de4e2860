//! Random operations on a few objects of a target, beside the same on bytes in memory. What goes wrong names its seed and all that led there.

use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut};

use stripewise_chance::SplitMix64;

use super::{Subject, listed, name, opened, pattern};
use crate::batch::{Request, submit};
use crate::interface::{Object, Target};
use crate::op::Op;

/// Histories, and operations of each.
const SEEDS: u64 = 30;
const OPERATIONS: u64 = 120;
/// Objects at most, and how long they get.
const FILES: u64 = 5;
const LEN_MAX: u64 = 200_000;

/// One history for each seed.
pub fn random_operations_do_what_they_do_to_bytes_in_memory(subject: &impl Subject) {
    for seed in 0..SEEDS {
        let target = subject.fresh();
        let mut run = Run { target: &target, known: BTreeMap::new(), dice: SplitMix64::new(seed, 0), done: vec![format!("seed {seed}")], stamp: 0 };
        for _ in 0..OPERATIONS {
            run.step();
        }
        run.check_all();
    }
}

struct Run<'a, T: Target> {
    target: &'a T,
    known: BTreeMap<u64, (T::Object, Vec<u8>)>,
    dice: SplitMix64,
    done: Vec<String>,
    stamp: u64,
}

impl<T: Target> Run<'_, T> {
    fn below(&mut self, n: u64) -> u64 {
        self.dice.below(n)
    }

    /// An offset or a length: of pages as often as any other.
    fn place(&mut self, max: u64) -> u64 {
        let place = self.below(max);
        if self.below(2) == 0 { place / 4096 * 4096 } else { place }
    }

    fn step(&mut self) {
        let file = self.below(FILES);
        if !self.known.contains_key(&file) {
            self.done.push(format!("make {file}"));
            let object = self.target.create(name(file), 0o600, None).unwrap_or_else(|errno| panic!("{errno}: {:#?}", self.done));
            self.known.insert(file, (object, Vec::new()));
            return;
        }
        match self.below(16) {
            0 => {
                self.done.push(format!("remove {file}"));
                self.target.remove(name(file), &[]).unwrap();
                self.known.remove(&file);
            }
            1 => {
                self.done.push(format!("open {file} anew"));
                let object = opened(self.target, file);
                self.known.get_mut(&file).unwrap().0 = object;
            }
            2..=3 => {
                let (at, len) = (self.place(LEN_MAX), self.place(LEN_MAX));
                self.done.push(format!("punch {file} {at}+{len}"));
                let (object, bytes) = self.known.get_mut(&file).unwrap();
                object.punch(at, len).unwrap();
                let end = ((at + len) as usize).min(bytes.len());
                bytes.get_mut(at as usize..end).unwrap_or(&mut []).fill(0);
            }
            4 => {
                let len = self.place(LEN_MAX);
                self.done.push(format!("set the length of {file} to {len}"));
                let (object, bytes) = self.known.get_mut(&file).unwrap();
                object.set_len(len).unwrap();
                bytes.resize(len as usize, 0);
            }
            5 => {
                self.done.push(format!("flush {file}"));
                self.known[&file].0.sync().unwrap();
            }
            6..=10 => self.write(),
            11..=14 => self.read(),
            _ => self.check_all(),
        }
    }

    /// Writes some objects in one batch, no two parts of it in one place.
    fn write(&mut self) {
        let files: Vec<u64> = self.known.keys().copied().collect();
        let mut writes = Vec::new();
        for file in files {
            if self.below(3) > 0 {
                self.stamp += 1;
                let (at, len, cut) = (self.place(LEN_MAX), self.place(20_000), self.below(20_001));
                writes.push((file, at, pattern(self.stamp, at, len as usize), cut as usize));
            }
        }
        self.done.push(format!("write {:?}", writes.iter().map(|(file, at, bytes, _)| (file, at, bytes.len())).collect::<Vec<_>>()));
        let parts: Vec<[IoSlice<'_>; 2]> = writes
            .iter()
            .map(|(.., bytes, cut)| {
                let (one, other) = bytes.split_at((*cut).min(bytes.len()));
                [IoSlice::new(one), IoSlice::new(other)]
            })
            .collect();
        let mut batch: Vec<_> =
            writes.iter().zip(&parts).map(|((file, at, ..), parts)| Request::new(&self.known[file].0, Op::write(parts, *at))).collect();
        submit(&mut batch).wait();
        for (request, (.., bytes, _)) in batch.iter().zip(&writes) {
            assert_eq!(request.op.outcome.result(), Ok(bytes.len() as u64), "{:#?}", self.done);
        }
        drop(batch);
        for (file, at, new, _) in &writes {
            let held = &mut self.known.get_mut(file).unwrap().1;
            if !new.is_empty() {
                let end = *at as usize + new.len();
                held.resize(held.len().max(end), 0);
                held[*at as usize..end].copy_from_slice(new);
            }
        }
    }

    /// Reads some places of some objects in one batch.
    fn read(&mut self) {
        let files: Vec<u64> = self.known.keys().copied().collect();
        let mut reads = Vec::new();
        for _ in 0..=self.below(8) {
            let file = files[self.below(files.len() as u64) as usize];
            reads.push((file, self.place(LEN_MAX), vec![7; self.place(30_000) as usize], vec![7; self.below(100) as usize]));
        }
        self.done.push(format!("read {:?}", reads.iter().map(|(file, at, one, other)| (file, at, one.len() + other.len())).collect::<Vec<_>>()));
        let places: Vec<(u64, u64)> = reads.iter().map(|(file, at, ..)| (*file, *at)).collect();
        let mut parts: Vec<_> = reads.iter_mut().map(|(.., one, other)| [IoSliceMut::new(one), IoSliceMut::new(other)]).collect();
        let mut batch: Vec<_> =
            places.iter().zip(&mut parts).map(|((file, at), parts)| Request::new(&self.known[file].0, Op::read(parts, *at))).collect();
        submit(&mut batch).wait();
        let outcomes: Vec<_> = batch.iter().map(|request| request.op.outcome).collect();
        drop(batch);
        for (outcome, (file, at, one, other)) in outcomes.iter().zip(&reads) {
            let (got, held) = ([&one[..], &other[..]].concat(), &self.known[file].1);
            let there = held.get(*at as usize..(*at as usize + got.len()).min(held.len())).unwrap_or(&[]);
            assert_eq!((outcome.done, outcome.error), (there.len() as u64, None), "{:#?}", self.done);
            assert!(got[..there.len()] == *there && got[there.len()..].iter().all(|byte| *byte == 7), "other bytes: {:#?}", self.done);
        }
    }

    /// Names, lengths, contents, and that no byte lies outside of what is told as data.
    fn check_all(&mut self) {
        self.done.push("look at all".into());
        assert_eq!(listed(self.target), self.known.keys().map(|file| name(*file)).collect::<Vec<_>>(), "{:#?}", self.done);
        for (file, (object, held)) in &self.known {
            let facts = self.target.look(name(*file)).unwrap().unwrap();
            assert_eq!((object.len(), facts.len), (Ok(held.len() as u64), held.len() as u64), "{file}: {:#?}", self.done);
            let mut rest = held.clone();
            let mut at = 0;
            while let Some((start, end)) = object.next_data(at).unwrap() {
                assert!(at <= start && start < end && end <= held.len() as u64, "{file}: {start}-{end} after {at}: {:#?}", self.done);
                let mut got = vec![0; (end - start) as usize];
                crate::batch::read_at(object, &mut got, start).unwrap();
                assert!(got == held[start as usize..end as usize], "{file}: other bytes in {start}-{end}: {:#?}", self.done);
                rest[start as usize..end as usize].fill(0);
                at = end;
            }
            assert!(rest.iter().all(|byte| *byte == 0), "{file}: bytes outside of {:#?}", self.done);
        }
    }
}

//! What every kind of target must do, as tests: one function states one fact. A new kind starts with [`crate::behaviour`], which runs them all on fresh
//! targets of it (docs/writing-a-target.md).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

pub mod bytes;
pub mod durable;
pub mod holes;
pub mod model;
pub mod objects;
pub mod together;

use crate::interface::{Opening, Target};
use crate::names::{ObjectName, Role};

/// A kind of target under test.
pub trait Subject {
    /// The kind.
    type Target: Target;

    /// A target without objects, of no other test.
    fn fresh(&self) -> Self::Target;

    /// Cuts the power of a target's machine; `seed` decides what of the rest stays. False for a kind whose power nobody can cut in a test.
    fn cut_power(&self, _target: &Self::Target, _seed: u64) -> bool {
        false
    }
}

/// Tests a kind: `behaviour!(name, subject)` makes a module of tests, each of which states one fact on fresh targets of the
/// [`Subject`](crate::suite::Subject) that the expression `subject` makes for it.
#[macro_export]
macro_rules! behaviour {
    ($name:ident, $subject:expr) => {
        mod $name {
            use super::*;
            $crate::behaviour!(@facts $subject, objects:
                an_object_is_made_once_and_is_empty,
                a_missing_object_is_an_error_and_never_a_hole,
                the_objects_of_a_file_are_apart,
                a_list_names_what_was_made_and_not_what_was_removed,
                nobody_finds_an_object_that_is_not_ready,
                a_removed_object_keeps_its_bytes_for_whoever_has_it_open,
                used_bytes_follow_the_objects,
                what_is_told_of_an_object_changes_with_its_bytes,
                an_identity_reads_back_until_another_takes_its_place);
            $crate::behaviour!(@facts $subject, bytes:
                what_is_written_reads_back_from_any_offset,
                a_read_is_short_at_the_end_only,
                bytes_that_nobody_wrote_are_zeros,
                a_batch_moves_the_bytes_of_several_objects,
                an_operation_has_any_number_of_stretches,
                an_operation_without_bytes_does_nothing,
                no_operation_ends_beyond_the_largest_offset,
                a_batch_that_is_dropped_is_done,
                one_wrong_operation_of_a_batch_spoils_no_other,
                a_read_that_may_not_wait_gives_what_is_there_or_says_again);
            $crate::behaviour!(@facts $subject, holes:
                a_hole_reads_as_zeros_and_the_length_stays,
                cutting_takes_bytes_away_and_growing_brings_zeros,
                data_ranges_cover_all_data,
                a_punched_page_is_no_data_any_more,
                no_hole_or_length_lies_beyond_the_largest_offset);
            $crate::behaviour!(@facts $subject, durable:
                what_was_flushed_survives_a_power_cut,
                a_cut_that_was_flushed_stays_cut,
                flushing_changes_nothing_that_is_seen);
            $crate::behaviour!(@facts $subject, together:
                two_who_have_an_object_open_see_the_same_bytes,
                threads_do_not_mix_their_bytes,
                a_descriptor_reaches_the_same_bytes,
                a_map_shows_the_same_bytes);
            $crate::behaviour!(@facts $subject, model: random_operations_do_what_they_do_to_bytes_in_memory);
        }
    };
    (@facts $subject:expr, $room:ident: $($fact:ident),+ $(,)?) => {
        $(
            #[test]
            fn $fact() {
                $crate::suite::$room::$fact(&$subject);
            }
        )+
    };
}

/// An object of plane 0 of file `file`.
pub(crate) const fn name(file: u64) -> ObjectName {
    ObjectName { file, role: Role::Plane0 }
}

/// A fresh target's new object of this file, open both ways.
pub(crate) fn made<T: Target>(target: &T, file: u64) -> T::Object {
    target.create(name(file), 0o600, None).unwrap()
}

pub(crate) fn opened<T: Target>(target: &T, file: u64) -> T::Object {
    target.open(name(file), Opening::BOTH).unwrap()
}

/// Bytes that tell where they belong; none is zero.
pub(crate) fn pattern(stamp: u64, at: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| ((at + i).wrapping_mul(31).wrapping_add(stamp * 17) % 255) as u8 + 1).collect()
}

/// The names that a target lists, sorted.
pub(crate) fn listed<T: Target>(target: &T) -> Vec<ObjectName> {
    let mut names = Vec::new();
    target
        .list(&mut |name| {
            names.push(name);
            Ok(())
        })
        .unwrap();
    names.sort_unstable();
    names
}

//! How files come into a store and leave it: adopt, export, links that have moved.

pub mod adopt;
pub mod export;
pub mod places;
pub mod relink;

//! A result with its figures and tables.

use super::{Figure, Table};

/// A result with its figures and tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Illustrated<T> {
    /// What was found.
    pub found: T,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Its tables.
    pub tables: Vec<Table>,
}

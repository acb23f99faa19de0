//! What an experiment finds in one cell and in all of them. Only its kind knows the types.

use std::any::Any;
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

use crate::figure::{Figure, Table};

/// A value of a type that only one kind of experiment knows.
pub trait Value: Any + Debug + Send + Sync {
    /// Whether another value has the same type and content.
    fn equals(&self, other: &dyn Any) -> bool;
}

impl<T: Any + Debug + PartialEq + Send + Sync> Value for T {
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>() == Some(self)
    }
}

/// What a cell finds beside its classifier's figures; clones share it.
#[derive(Debug, Clone)]
pub struct CellOutput(Arc<dyn Value>);

impl CellOutput {
    /// Of one kind.
    pub fn new(value: impl Value) -> Self {
        Self(Arc::new(value))
    }

    /// The value, where it is of type `T`.
    pub fn get<T: Value>(&self) -> Option<&T> {
        let value: &dyn Any = &*self.0;
        value.downcast_ref()
    }
}

impl PartialEq for CellOutput {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

/// What the finished cells of one kind of experiment say together.
pub trait Findings: Value {
    /// Its figures, those first that answer the question.
    fn figures(&self) -> Vec<Figure>;

    /// Its tables.
    fn tables(&self) -> Vec<Table>;

    /// The same without the gaps between classifiers and the Bayes error of the world, for test
    /// images that are not of the world. `None` where it has no such gap.
    fn without_gaps_to_the_world(&self) -> Option<Analysis> {
        None
    }
}

/// The findings of any kind of experiment; clones share them.
#[derive(Debug, Clone)]
pub struct Analysis(Arc<dyn Findings>);

impl Analysis {
    /// Of one kind.
    pub fn new(findings: impl Findings) -> Self {
        Self(Arc::new(findings))
    }

    /// The findings, where they are of type `T`.
    pub fn get<T: Findings>(&self) -> Option<&T> {
        let findings: &dyn Any = &*self.0;
        findings.downcast_ref()
    }

    /// Its figures in which there is something of its own, those first that answer the question.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = self.0.figures();
        figures.retain(|figure| figure.series.iter().any(|series| !series.faint && !series.points.is_empty()));
        figures
    }
}

impl Deref for Analysis {
    type Target = dyn Findings;

    fn deref(&self) -> &dyn Findings {
        &*self.0
    }
}

impl PartialEq for Analysis {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

//! How a long computation talks to its caller: one stream of typed events, which is at once the
//! report, the pause point and the cancel check. The window's worker, the command line and the
//! tests differ only in the sink they pass.

use std::ops::ControlFlow;

use crate::error::{Error, Result};

/// A sink of events of one kind.
pub trait Events<E> {
    /// Takes one event. May block while the computation is paused. `Break` asks it to stop soon.
    fn emit(&mut self, event: E) -> ControlFlow<()>;

    /// [`Self::emit`], with a stop turned into [`Error::Cancelled`].
    ///
    /// # Errors
    /// [`Error::Cancelled`] when the caller wants to stop.
    fn report(&mut self, event: E) -> Result<()> {
        match self.emit(event) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Cancelled),
        }
    }
}

impl<E, F: FnMut(E) -> ControlFlow<()>> Events<E> for F {
    fn emit(&mut self, event: E) -> ControlFlow<()> {
        self(event)
    }
}

/// A sink for those who do not want to hear anything.
pub fn silent<E>() -> impl FnMut(E) -> ControlFlow<()> {
    |_| ControlFlow::Continue(())
}

/// How far a computation of countable items has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Progress {
    /// Items finished.
    pub done: usize,
    /// Items in all.
    pub total: usize,
}

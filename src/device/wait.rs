//! Waiting for an answer that may never come.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future as long as `patience` returns a further time. Its work is not stopped.
fn with<F: Future>(future: F, mut patience: impl FnMut() -> Option<Duration>) -> Option<F::Output> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut poll = || match future.as_mut().poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    };
    loop {
        if let Some(output) = poll() {
            return Some(output);
        }
        match patience() {
            Some(further) => std::thread::park_timeout(further),
            // It may have come while `patience` was considering.
            None => return poll(),
        }
    }
}

/// Waits for a future no longer than `limit`.
#[cfg(feature = "remote")]
pub fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let end = Instant::now() + limit;
    with(future, || end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()))
}

/// Waits for a future, and asks every `pause` whether the other side is still there.
pub fn while_there<F: Future>(pause: Duration, future: F, mut there: impl FnMut() -> bool) -> Option<F::Output> {
    let mut asked = Instant::now();
    with(future, || {
        if asked.elapsed() >= pause {
            asked = Instant::now();
            return there().then_some(pause);
        }
        Some(pause)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_waited_for_while_somebody_is_there_to_give_it() {
        const PAUSE: Duration = Duration::from_millis(2);
        assert_eq!(while_there(PAUSE, std::future::ready(3), || false), Some(3));
        let mut questions = 0;
        let never = while_there(PAUSE, std::future::pending::<()>(), || {
            questions += 1;
            questions < 4
        });
        assert_eq!((never, questions), (None, 4));
        let mut pauses = 0;
        let late = std::future::poll_fn(|context| {
            pauses += 1;
            context.waker().wake_by_ref();
            if pauses > 3 { Poll::Ready(pauses) } else { Poll::Pending }
        });
        assert_eq!(while_there(PAUSE, late, || true), Some(4));
        let come = std::cell::Cell::new(false);
        let meanwhile = std::future::poll_fn(|_| if come.get() { Poll::Ready(5) } else { Poll::Pending });
        let there = || {
            come.set(true);
            false
        };
        assert_eq!(while_there(PAUSE, meanwhile, there), Some(5), "it came while the question was asked");
    }
}

//! Yielding the queue that window and engine share. A window gets a new size only while the queue
//! is empty; otherwise wgpu refuses and the frame is lost. An engine that computes without pause
//! never leaves it empty, so it waits for a few frames.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// In the first the window asks again for its size, in the second for the latency it had
/// ([`take_refusal`]); a resize by hand needs the others.
const FRAMES: u32 = 6;
/// A window that has not been painted for so long takes no turn.
const PATIENCE: Duration = Duration::from_secs(1);

/// Frames that are the window's alone.
static FRAMES_LEFT: AtomicU32 = AtomicU32::new(0);
/// Whether the window was refused its size since the last question.
static REFUSED: AtomicBool = AtomicBool::new(false);
/// When the last frame of a turn began, or the turn.
static LAST: Mutex<Option<Instant>> = Mutex::new(None);
static OVER: Condvar = Condvar::new();

fn last() -> MutexGuard<'static, Option<Instant>> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next few frames are the window's alone.
pub fn take() {
    *last() = Some(Instant::now());
    FRAMES_LEFT.store(FRAMES, Ordering::Relaxed);
}

/// The same, for a window that was refused its size.
pub fn refused() {
    REFUSED.store(true, Ordering::Relaxed);
    take();
}

/// Whether the window was refused its size since the last question.
pub fn take_refusal() -> bool {
    REFUSED.swap(false, Ordering::Relaxed)
}

/// Whether frames are the window's alone.
pub fn is_taken() -> bool {
    FRAMES_LEFT.load(Ordering::Relaxed) > 0
}

/// To be called when a frame of the window begins. Returns whether the frame is the window's alone;
/// then another one should follow soon, so that the engine does not wait long.
pub fn frame() -> bool {
    let one_less = |left: u32| left.checked_sub(1);
    let left = FRAMES_LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
    if left.is_ok() {
        *last() = Some(Instant::now());
        OVER.notify_all();
    }
    left.is_ok()
}

/// Waits while frames are the window's alone, at most [`PATIENCE`] after its last frame.
pub fn wait() {
    let mut last = last();
    while is_taken() {
        let since = last.map_or(PATIENCE, |last| last.elapsed());
        let Some(left) = PATIENCE.checked_sub(since).filter(|left| !left.is_zero()) else {
            FRAMES_LEFT.store(0, Ordering::Relaxed);
            OVER.notify_all();
            break;
        };
        last = OVER.wait_timeout(last, left).unwrap_or_else(PoisonError::into_inner).0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_some_frames_long_and_hinders_nobody_on_another_device() {
        take();
        assert!((0..FRAMES).all(|_| is_taken() && frame()));
        assert!(!is_taken() && !frame());
        take();
        let began = Instant::now();
        crate::device::yield_to_window(&burn::tensor::Device::flex());
        assert!(began.elapsed() < PATIENCE / 2 && is_taken());
        FRAMES_LEFT.store(0, Ordering::Relaxed);
    }
}

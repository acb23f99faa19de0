//! Whose turn it is on a queue that window and engine share. A window gets its new size only while the queue is empty: wgpu refuses
//! otherwise, and the frame is lost. An engine that computes without pause never leaves it empty; so it is asked to stand aside for a
//! few frames.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use burn::tensor::Device;

use super::window::paints;
use crate::error::caught;

/// In the first the driver says that the surface is not of the window's size, in the second egui asks for one that is, and whoever
/// draws a window larger goes on with it.
const FRAMES: u32 = 6;
/// A window that nobody paints takes no turn.
const PATIENCE: Duration = Duration::from_secs(1);

/// Frames that are the window's alone.
static FRAMES_LEFT: AtomicU32 = AtomicU32::new(0);
static TURN: Mutex<()> = Mutex::new(());
static OVER: Condvar = Condvar::new();

/// The next few frames are the window's alone.
pub fn take() {
    FRAMES_LEFT.store(FRAMES, Ordering::Relaxed);
}

/// Whether frames are the window's alone.
pub fn is_taken() -> bool {
    FRAMES_LEFT.load(Ordering::Relaxed) > 0
}

/// A frame of the window begins: whether another one should follow soon, so that the engine need not wait long.
pub fn frame() -> bool {
    let one_less = |left: u32| left.checked_sub(1);
    let left = FRAMES_LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
    if left == Ok(1) {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        OVER.notify_all();
    }
    left.is_ok()
}

/// For whoever computes on `device`, between two pieces of work: if that is the window's, finishes what was begun and waits while
/// frames are the window's alone.
pub fn stand_aside(device: &Device) {
    if !is_taken() || !paints(device) {
        return;
    }
    // What fails here is told by whoever reads next.
    _ = caught(|| device.sync());
    let began = Instant::now();
    let mut turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    while is_taken() {
        let Some(left) = PATIENCE.checked_sub(began.elapsed()) else {
            FRAMES_LEFT.store(0, Ordering::Relaxed);
            break;
        };
        turn = OVER.wait_timeout(turn, left).unwrap_or_else(PoisonError::into_inner).0;
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
        stand_aside(&Device::flex());
        assert!(began.elapsed() < PATIENCE / 2 && is_taken());
        FRAMES_LEFT.store(0, Ordering::Relaxed);
    }
}

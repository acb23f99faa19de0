//! How long the window's thread was ready to run and had no core.

use std::time::Duration;

/// The scheduler's account of a thread.
#[derive(Default)]
pub struct CoreWait {
    #[cfg(target_os = "linux")]
    account: Option<std::fs::File>,
}

impl CoreWait {
    /// Of the thread that calls.
    pub fn of_this_thread() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            account: std::fs::File::open("/proc/thread-self/schedstat").ok(),
        }
    }

    /// Since the thread began; `None` where the system does not tell.
    #[cfg(target_os = "linux")]
    pub fn so_far(&self) -> Option<Duration> {
        use std::os::unix::fs::FileExt;
        let mut line = [0; 96];
        let read = self.account.as_ref()?.read_at(&mut line, 0).ok()?;
        // Nanoseconds on a core, nanoseconds waiting for one, turns.
        let waited = str::from_utf8(&line[..read]).ok()?.split_whitespace().nth(1)?;
        waited.parse().ok().map(Duration::from_nanos)
    }

    /// Since the thread began; `None` where the system does not tell.
    #[cfg(not(target_os = "linux"))]
    pub fn so_far(&self) -> Option<Duration> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::hint::black_box;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use super::*;

    /// With more than twice as many threads at work as there are cores, they wait.
    #[test]
    fn a_thread_that_shares_its_core_waits_for_it() {
        let wait = CoreWait::of_this_thread();
        let Some(before) = wait.so_far() else {
            return eprintln!("skipped: this system does not tell how long a thread waits for a core");
        };
        let threads = 2 * std::thread::available_parallelism().map_or(1, usize::from);
        let others = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (done, begun) = (Arc::new(AtomicBool::new(false)), Instant::now());
        let seen = Arc::clone(&done);
        others.spawn_broadcast(move |_| while !seen.load(Ordering::Relaxed) {});
        let mut sum = 0u64;
        while begun.elapsed() < Duration::from_millis(300) {
            sum = black_box(sum.wrapping_add(1));
        }
        let (waited, elapsed) = (wait.so_far(), begun.elapsed());
        done.store(true, Ordering::Relaxed);
        let waited = waited.unwrap() - before;
        assert!(waited > Duration::from_millis(20) && waited <= elapsed, "{waited:?} of {elapsed:?}");
    }
}

//! Work shared out over the cores by rayon, whose division of work is compiled here once for all that call it by way of this file.
//!
//! Every `(0..n).into_par_iter().map(f).collect()` compiles a division of work of its own, thousands of lines of LLVM's code. Here
//! there is one, of a function behind a pointer ([`each`]), and what is compiled anew for a type are a few lines around it. The price
//! is a call through that pointer for each item, and a list for each piece of items. Kernels, flows and networks do not pay it: they
//! name rayon's iterators themselves (`tests/layering.rs` says where).
//!
//! Results are in the order of their indices, whatever the number of threads is. Work runs on the pool of rayon that the caller is in,
//! and may share out work of its own. A panic of it goes on to the caller as rayon passes it on: when what was begun beside it has
//! ended.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

/// Pieces for each thread, where there are so many items: with the last ones all threads end at nearly the same time.
const PIECES: usize = 64;
/// Items of a piece, at most: beside the work of so many, what a piece costs is little.
const LONGEST: usize = 256;

/// Calls `work` with every index below `count`, in any order. Here rayon's division of work is compiled, once.
pub fn each(count: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(work);
}

/// Returns what `work` makes of every index below `count`, in their order. Items may take seconds or nanoseconds: where there are
/// many of them, a thread takes up to some hundreds at once.
pub fn map<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    mapped(count, &work)
}

/// Returns all that `work` makes of the indices below `count`, in their order, in one list.
pub fn flat_map<T: Send>(count: usize, work: impl Fn(usize) -> Vec<T> + Sync) -> Vec<T> {
    joined(count, &work)
}

/// As [`map`], of work that may fail. Of several failures the one of the lowest index is returned, whichever came first; what comes
/// behind a failure need not be begun.
///
/// # Errors
/// The first of `work`, in the order of indices.
pub fn try_map<T: Send, E: Send>(count: usize, work: impl Fn(usize) -> Result<T, E> + Sync) -> Result<Vec<T>, E> {
    before_failure(count, &work)
}

/// Calls `work` with every item and its index, in any order. As [`map`] for items of any length.
pub fn each_mut<T: Send>(items: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
    let length = piece(items.len());
    let of_piece = |at: usize, items: &mut [T]| {
        items.iter_mut().enumerate().for_each(|(i, item)| work(at * length + i, item));
    };
    in_chunks(items, length, &of_piece);
}

/// Calls `work` with every chunk of `length` items, of which the last may have fewer, and its number, in any order.
pub fn chunks_mut<T: Send>(items: &mut [T], length: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    in_chunks(items, length, &work);
}

/// Items that a thread takes at once, of `count`.
fn piece(count: usize) -> usize {
    (count / (PIECES * rayon::current_num_threads())).clamp(1, LONGEST)
}

fn mapped<T: Send>(count: usize, work: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
    let length = piece(count);
    joined(count.div_ceil(length), &|at| (at * length..count.min((at + 1) * length)).map(work).collect())
}

fn joined<T: Send>(count: usize, work: &(dyn Fn(usize) -> Vec<T> + Sync)) -> Vec<T> {
    let slots: Vec<Mutex<Vec<T>>> = (0..count).map(|_| Mutex::default()).collect();
    each(count, &|at| {
        let made = work(at);
        *lock(&slots[at]) = made;
    });
    let mut all = Vec::with_capacity(slots.iter().map(|slot| lock(slot).len()).sum());
    slots.iter().for_each(|slot| all.append(&mut std::mem::take(&mut *lock(slot))));
    all
}

fn before_failure<T: Send, E: Send>(count: usize, work: &(dyn Fn(usize) -> Result<T, E> + Sync)) -> Result<Vec<T>, E> {
    // The lowest index of a failure. All below it are begun whatever happens, so it is the same on any number of threads.
    let failed = AtomicUsize::new(usize::MAX);
    let made = map(count, |i| {
        let begun = i < failed.load(Ordering::Relaxed);
        begun.then(|| work(i).inspect_err(|_| _ = failed.fetch_min(i, Ordering::Relaxed)))
    });
    made.into_iter().flatten().collect()
}

fn in_chunks<T: Send>(items: &mut [T], length: usize, work: &(dyn Fn(usize, &mut [T]) + Sync)) {
    let chunks: Vec<Mutex<&mut [T]>> = items.chunks_mut(length).map(Mutex::new).collect();
    each(chunks.len(), &|at| work(at, &mut lock(&chunks[at])));
}

/// Every lock is of one index alone: nobody waits for it, and nobody looks at what a panic left.
fn lock<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on<T: Send>(threads: usize, run: impl FnOnce() -> T + Send) -> T {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run)
    }

    #[test]
    fn results_are_in_order_on_any_number_of_threads() {
        // None; pieces of one item; of several, the last shorter; of the most.
        for count in [0, 1, 63, 1000, 100_001] {
            for threads in [1, 3] {
                let found = on(threads, || map(count, |i| i as f64));
                assert_eq!(found, (0..count).map(|i| i as f64).collect::<Vec<_>>(), "{count} on {threads}");
            }
        }
        let row = |i: usize| vec![i; i % 4];
        assert_eq!(on(3, || flat_map(1000, row)), (0..1000).flat_map(row).collect::<Vec<_>>());
    }

    #[test]
    fn items_are_changed_once_under_their_own_index() {
        for count in [0, 1, 1000, 100_001] {
            let mut items = vec![1; count];
            on(3, || each_mut(&mut items, |i, item| *item += i));
            assert_eq!(items, (1..=count).collect::<Vec<_>>());
        }
        let mut items = [0; 10];
        on(3, || chunks_mut(&mut items, 4, |at, chunk| chunk.fill(10 * at + chunk.len())));
        assert_eq!(items, [4, 4, 4, 4, 14, 14, 14, 14, 22, 22]);
    }

    #[test]
    fn the_failure_of_the_lowest_index_is_told_and_what_follows_is_not_begun() {
        let odd = |i: usize| if i % 400 == 300 { Err(i) } else { Ok(i) };
        for _ in 0..100 {
            assert_eq!(on(4, || try_map(1000, odd)), Err(300));
        }
        assert_eq!(try_map(300, odd), Ok((0..300).collect()));
        let begun = AtomicUsize::new(0);
        let counted = |i: usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            odd(i)
        };
        assert_eq!(on(1, || try_map(1000, counted)), Err(300));
        assert!(begun.into_inner() < 400);
    }

    #[test]
    fn a_panic_goes_on_to_the_caller() {
        let run = || on(3, || map(10, |i| if i == 3 { panic!("the third") } else { i }));
        let payload = std::panic::catch_unwind(run).unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"the third"));
    }

    #[test]
    fn work_may_share_out_work_of_its_own() {
        let sums = on(3, || map(50, |i| map(500, |j| i * j).into_iter().sum::<usize>()));
        assert_eq!(sums, (0..50).map(|i| i * 499 * 250).collect::<Vec<_>>());
    }
}

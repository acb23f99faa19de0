//! What happens to every number alone.

use rayon::prelude::*;

use super::{Maps, Tape};
use crate::kernels::{Real, kernel};

/// Numbers that one thread moves at a time.
pub const PIECE: usize = 1 << 14;

kernel! {
    add_piece<T, S>(sum: &'a mut [T], more: &'a [T]) {
        for (sum, more) in sum.iter_mut().zip(more) {
            *sum += *more;
        }
    }
}

kernel! {
    /// out = a + b.
    pub sum_of<T, S>(a: &'a [T], b: &'a [T], out: &'a mut [T]) {
        for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
            *out = *a + *b;
        }
    }
}

/// `sum` += `more`.
pub fn add<T: Real>(sum: &mut [T], more: &[T]) {
    sum.par_chunks_mut(PIECE).zip(more.par_chunks(PIECE)).for_each(|(sum, more)| add_piece(sum, more));
}

impl<T: Real> Tape<T> {
    /// a + b.
    pub fn add(&mut self, a: Maps, b: Maps) -> Maps {
        let mut out = self.take(a.len());
        let (left, right) = (self.value(a), self.value(b));
        let pieces = out.par_chunks_mut(PIECE).zip(left.par_chunks(PIECE).zip(right.par_chunks(PIECE)));
        pieces.for_each(|(out, (a, b))| sum_of(a, b, out));
        let out = self.push(out, Maps { slopes: a.slopes || b.slopes, ..a });
        self.record(out, move |tape, slope| {
            let mut copy = tape.take(slope.len());
            copy.copy_from_slice(&slope);
            tape.add_slope(a, copy);
            tape.add_slope(b, slope);
        });
        out
    }
}

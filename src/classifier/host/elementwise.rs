//! What happens to every number alone.

use rayon::prelude::*;

use super::kernel::kernel;
use super::{Host, Maps};
use crate::kernels::rows::GeluInto;
use crate::kernels::{Real, vectorise};

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
    sum_piece<T, S>(a: &'a [T], b: &'a [T], out: &'a mut [T]) {
        for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
            *out = *a + *b;
        }
    }
}

kernel! {
    gelu_slope_piece<T, S>(x: &'a [T], slope: &'a mut [T]) {
        for (slope, x) in slope.iter_mut().zip(x) {
            *slope = *slope * T::gelu_and_slope::<S>(*x).1;
        }
    }
}

/// `sum` += `more`.
pub fn add<T: Real>(sum: &mut [T], more: &[T]) {
    sum.par_chunks_mut(PIECE).zip(more.par_chunks(PIECE)).for_each(|(sum, more)| add_piece(sum, more));
}

impl<T: Real> Host<T> {
    /// a + b.
    pub fn plus(&mut self, a: Maps, b: Maps) -> Maps {
        let mut out = self.take(a.len());
        let (left, right) = (self.value(a), self.value(b));
        let pieces = out.par_chunks_mut(PIECE).zip(left.par_chunks(PIECE).zip(right.par_chunks(PIECE)));
        pieces.for_each(|(out, (a, b))| sum_piece(a, b, out));
        let out = self.push(out, Maps { slopes: a.slopes || b.slopes, ..a });
        self.record(out, move |host, slope| {
            let mut copy = host.take(slope.len());
            copy.copy_from_slice(&slope);
            host.add_slope(a, copy);
            host.add_slope(b, slope);
        });
        out
    }

    /// x Φ(x).
    pub fn gelu(&mut self, x: Maps) -> Maps {
        let mut out = self.take(x.len());
        let value = self.value(x);
        let pieces = out.par_chunks_mut(PIECE).zip(value.par_chunks(PIECE));
        pieces.for_each(|(out, x)| vectorise(GeluInto { x, out }));
        let out = self.push(out, x);
        self.record(out, move |host, mut slope| {
            let value = host.value(x);
            let pieces = slope.par_chunks_mut(PIECE).zip(value.par_chunks(PIECE));
            pieces.for_each(|(slope, x)| gelu_slope_piece(x, slope));
            drop(value);
            host.add_slope(x, slope);
        });
        out
    }
}

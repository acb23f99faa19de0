//! Blocks of points for the widest registers this machine has ([`crate::kernels`]). Loops over a
//! [`Block`] are written plainly, branch-free, and inlined into one function per instruction set,
//! where the compiler vectorises them.

use pulp::{Simd, WithSimd};

/// Points computed together.
pub const BLOCK: usize = 64;

/// One number for each point of a block.
pub type Block = [f64; BLOCK];

/// How a product is added: baseline x86-64 has no fused multiply-add, and its emulation costs a
/// hundred times more than the rounding it saves.
pub trait Arithmetic: Copy {
    /// a·b + c.
    fn mul_add(a: f64, b: f64, c: f64) -> f64;

    /// What rounding took from x·x.
    fn square_rest(x: f64) -> f64;
}

/// One rounding; fast where the instruction set has it, exact everywhere.
#[derive(Clone, Copy)]
pub struct Fused;

/// Two roundings.
#[derive(Clone, Copy)]
pub struct Plain;

impl Arithmetic for Fused {
    #[inline(always)]
    fn mul_add(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }

    #[inline(always)]
    fn square_rest(x: f64) -> f64 {
        x.mul_add(x, -(x * x))
    }
}

impl Arithmetic for Plain {
    #[inline(always)]
    fn mul_add(a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }

    /// Dekker's product: x in two halves of 26 bits, whose products are exact.
    #[inline(always)]
    fn square_rest(x: f64) -> f64 {
        let split = 134_217_729.0 * x;
        let high = split - (split - x);
        let low = x - high;
        ((high * high - x * x) + 2.0 * high * low) + low * low
    }
}

/// A computation compiled per instruction set. `run` and its callees must be `#[inline(always)]`.
pub trait Kernel {
    /// What it returns.
    type Output;

    /// Computes with the given arithmetic.
    fn run<A: Arithmetic>(self) -> Self::Output;
}

struct Vectorised<K>(K);

impl<K: Kernel> WithSimd for Vectorised<K> {
    type Output = K::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> K::Output {
        // Every vector instruction set that pulp chooses has fused multiply-add.
        if size_of::<S::f64s>() > size_of::<f64>() { self.0.run::<Fused>() } else { self.0.run::<Plain>() }
    }
}

/// Runs a kernel with the instructions of [`crate::kernels`].
pub fn vectorise<K: Kernel>(kernel: K) -> K::Output {
    crate::kernels::vectorise(Vectorised(kernel))
}

#[cfg(all(test, target_arch = "x86_64"))]
pub(super) mod tests {
    use super::*;

    /// What a kernel gives with every instruction set this machine has.
    pub fn on_every_set<K: Kernel + Copy>(kernel: K) -> Vec<(&'static str, K::Output)> {
        let mut found = vec![("portable", Simd::vectorize(pulp::Scalar::new(), Vectorised(kernel)))];
        found.extend(pulp::x86::V3::try_new().map(|set| ("AVX2", Simd::vectorize(set, Vectorised(kernel)))));
        found.extend(pulp::x86::V4::try_new().map(|set| ("AVX-512", Simd::vectorize(set, Vectorised(kernel)))));
        found
    }

    #[test]
    fn squares_lose_nothing_with_either_arithmetic() {
        for i in 1..1000 {
            let x = 0.037 * f64::from(i);
            assert_eq!(Fused::square_rest(x), Plain::square_rest(x), "{x}");
        }
    }
}

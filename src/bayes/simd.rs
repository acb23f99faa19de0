//! Blocks of points and the widest registers this machine has for them (AVX-512, AVX2 with FMA, NEON, or none), chosen
//! when the program runs. Loops over a [`Block`] are written plainly, branch-free, and inlined into one function per
//! instruction set, where the compiler vectorises them.

use pulp::{Arch, Simd, WithSimd};

/// Points computed together.
pub const BLOCK: usize = 64;

/// One number for each point of a block.
pub type Block = [f64; BLOCK];

/// How a product is added: baseline x86-64 has no fused multiply-add, and its emulation costs a hundred times more than
/// the rounding it saves.
pub trait Arithmetic: Copy {
    /// a·b + c.
    fn mul_add(a: f64, b: f64, c: f64) -> f64;
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
}

impl Arithmetic for Plain {
    #[inline(always)]
    fn mul_add(a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }
}

/// A computation that is compiled once per instruction set. `run` must be `#[inline(always)]`, as all it calls.
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
        // Every instruction set with vector registers that pulp chooses from has fused multiply-add.
        if size_of::<S::f64s>() > size_of::<f64>() { self.0.run::<Fused>() } else { self.0.run::<Plain>() }
    }
}

/// Runs a kernel with the best instructions of this machine.
pub fn vectorise<K: Kernel>(kernel: K) -> K::Output {
    Arch::new().dispatch(Vectorised(kernel))
}

/// The instruction set [`vectorise`] uses, in words.
pub fn instructions() -> &'static str {
    struct Name;
    impl WithSimd for Name {
        type Output = &'static str;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> &'static str {
            match size_of::<S::f64s>() {
                64 => "AVX-512",
                32 => "AVX2 with FMA",
                16 => "128-bit vectors",
                _ => "no vector instructions",
            }
        }
    }
    Arch::new().dispatch(Name)
}

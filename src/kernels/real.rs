//! The two precisions: what the kernels need of a number and of a register full of them.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

use pulp::Simd;

use super::functions;

/// A floating-point number that fills vector registers.
pub trait Real:
    Copy
    + Debug
    + Default
    + Send
    + Sync
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + 'static
{
    /// A register full.
    type Vector<S: Simd>: Copy;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// −∞.
    const LEAST: Self;

    /// The nearest number of this precision.
    fn of(x: f64) -> Self;
    /// The same number in f64.
    fn wide(self) -> f64;
    /// √x.
    fn sqrt(self) -> Self;
    /// Whether it is no number.
    fn is_nan(self) -> bool;

    /// Numbers in a register.
    fn lanes<S: Simd>() -> usize;
    /// Registers in a slice, without the rest that fills none.
    fn vectors<S: Simd>(x: &[Self]) -> &[Self::Vector<S>];
    /// The same, to write.
    fn vectors_mut<S: Simd>(x: &mut [Self]) -> &mut [Self::Vector<S>];
    /// A register whose first numbers are those of `x`, which fills none; the others are 0.
    fn beginning<S: Simd>(simd: S, x: &[Self]) -> Self::Vector<S>;
    /// Writes the first numbers of a register, as many as `out` has.
    fn write_beginning<S: Simd>(simd: S, a: Self::Vector<S>, out: &mut [Self]);
    /// x in every lane.
    fn splat<S: Simd>(simd: S, x: Self) -> Self::Vector<S>;
    /// a + b.
    fn plus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// a·b.
    fn times<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// a − b.
    fn minus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// The larger of a and b.
    fn larger<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// Sum of all lanes.
    fn total<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;
    /// The largest lane.
    fn largest<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;
    /// a·b + c.
    fn multiply_add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>, c: Self::Vector<S>) -> Self::Vector<S>;

    /// a·b + c of single numbers, one rounding where the instruction set has it.
    fn fused<S: Simd>(a: Self, b: Self, c: Self) -> Self;
    /// e^x.
    fn exponential<S: Simd>(x: Self) -> Self;
    /// e^x for x ≤ 0; 0 where that is too small for a normal number.
    fn falling_exponential<S: Simd>(x: Self) -> Self;
    /// x Φ(x).
    fn gelu<S: Simd>(x: Self) -> Self;
    /// x Φ(x) and its derivative Φ(x) + x φ(x).
    fn gelu_and_slope<S: Simd>(x: Self) -> (Self, Self);
}

macro_rules! vector_operations {
    ($t:ident, $lanes:ident, $vector:ident, $vectors:ident, $vectors_mut:ident, $splat:ident, $add:ident, $mul:ident, $fma:ident,
     $sub:ident, $max:ident, $sum:ident, $top:ident, $load:ident, $store:ident) => {
        type Vector<S: Simd> = S::$vector;
        const ZERO: Self = 0.0;
        const ONE: Self = 1.0;
        const LEAST: Self = $t::NEG_INFINITY;

        #[inline(always)]
        fn of(x: f64) -> Self {
            x as $t
        }
        #[inline(always)]
        fn wide(self) -> f64 {
            f64::from(self)
        }
        #[inline(always)]
        fn sqrt(self) -> Self {
            $t::sqrt(self)
        }
        #[inline(always)]
        fn is_nan(self) -> bool {
            $t::is_nan(self)
        }
        #[inline(always)]
        fn lanes<S: Simd>() -> usize {
            S::$lanes
        }
        #[inline(always)]
        fn vectors<S: Simd>(x: &[Self]) -> &[S::$vector] {
            S::$vectors(x).0
        }
        #[inline(always)]
        fn vectors_mut<S: Simd>(x: &mut [Self]) -> &mut [S::$vector] {
            S::$vectors_mut(x).0
        }
        #[inline(always)]
        fn beginning<S: Simd>(simd: S, x: &[Self]) -> S::$vector {
            simd.$load(x)
        }
        #[inline(always)]
        fn write_beginning<S: Simd>(simd: S, a: S::$vector, out: &mut [Self]) {
            simd.$store(out, a);
        }
        #[inline(always)]
        fn splat<S: Simd>(simd: S, x: Self) -> S::$vector {
            simd.$splat(x)
        }
        #[inline(always)]
        fn plus<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
            simd.$add(a, b)
        }
        #[inline(always)]
        fn times<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
            simd.$mul(a, b)
        }
        #[inline(always)]
        fn minus<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
            simd.$sub(a, b)
        }
        #[inline(always)]
        fn larger<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
            simd.$max(a, b)
        }
        #[inline(always)]
        fn total<S: Simd>(simd: S, a: S::$vector) -> Self {
            simd.$sum(a)
        }
        #[inline(always)]
        fn largest<S: Simd>(simd: S, a: S::$vector) -> Self {
            simd.$top(a)
        }
        #[inline(always)]
        fn multiply_add<S: Simd>(simd: S, a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector {
            simd.$fma(a, b, c)
        }
        #[inline(always)]
        fn fused<S: Simd>(a: Self, b: Self, c: Self) -> Self {
            // Every instruction set with vector registers that pulp chooses from has fused
            // multiply-add; elsewhere its emulation costs a hundred times more than the rounding it
            // saves.
            if S::$lanes > 1 { a.mul_add(b, c) } else { a * b + c }
        }
    };
}

impl Real for f32 {
    vector_operations!(
        f32,
        F32_LANES,
        f32s,
        as_simd_f32s,
        as_mut_simd_f32s,
        splat_f32s,
        add_f32s,
        mul_f32s,
        mul_add_e_f32s,
        sub_f32s,
        max_f32s,
        reduce_sum_f32s,
        reduce_max_f32s,
        partial_load_f32s,
        partial_store_f32s
    );

    #[inline(always)]
    fn exponential<S: Simd>(x: f32) -> f32 {
        functions::exp_f32::<S>(x)
    }

    #[inline(always)]
    fn falling_exponential<S: Simd>(x: f32) -> f32 {
        functions::falling_exp_f32::<S>(x)
    }

    #[inline(always)]
    fn gelu<S: Simd>(x: f32) -> f32 {
        functions::gelu_f32::<S>(x)
    }

    #[inline(always)]
    fn gelu_and_slope<S: Simd>(x: f32) -> (f32, f32) {
        functions::gelu_and_slope_f32::<S>(x)
    }
}

impl Real for f64 {
    vector_operations!(
        f64,
        F64_LANES,
        f64s,
        as_simd_f64s,
        as_mut_simd_f64s,
        splat_f64s,
        add_f64s,
        mul_f64s,
        mul_add_e_f64s,
        sub_f64s,
        max_f64s,
        reduce_sum_f64s,
        reduce_max_f64s,
        partial_load_f64s,
        partial_store_f64s
    );

    #[inline(always)]
    fn exponential<S: Simd>(x: f64) -> f64 {
        functions::exp_f64::<S>(x)
    }

    #[inline(always)]
    fn falling_exponential<S: Simd>(x: f64) -> f64 {
        functions::falling_exp_f64::<S>(x)
    }

    #[inline(always)]
    fn gelu<S: Simd>(x: f64) -> f64 {
        functions::gelu_f64::<S>(x)
    }

    #[inline(always)]
    fn gelu_and_slope<S: Simd>(x: f64) -> (f64, f64) {
        functions::gelu_and_slope_f64::<S>(x)
    }
}

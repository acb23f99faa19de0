//! What happens to rows of numbers between the matrix products: layer normalisation, GELU, the affine map of a token, and
//! their reverse passes.

use pulp::{Simd, WithSimd};

use super::{Real, vectorise};

/// Σ over the registers of some slices of an expression in theirs, by two sums side by side. Not a function of a closure:
/// that would be compiled on its own, without the instruction set it is called in.
macro_rules! sum {
    ($t:ident, $s:ident, $simd:expr; $($v:ident in $slice:expr),+ => $value:expr) => {{
        let count = usize::MAX;
        $(let $v = $t::vectors::<$s>($slice); let count = count.min($v.len());)+
        $(let $v = &$v[..count];)+
        let (mut even, mut odd) = ($t::splat($simd, $t::ZERO), $t::splat($simd, $t::ZERO));
        for pair in 0..count / 2 {
            even = { $(let $v = $v[2 * pair];)+ $t::plus($simd, even, $value) };
            odd = { $(let $v = $v[2 * pair + 1];)+ $t::plus($simd, odd, $value) };
        }
        if count % 2 == 1 {
            even = { $(let $v = $v[count - 1];)+ $t::plus($simd, even, $value) };
        }
        $t::total($simd, $t::plus($simd, even, odd))
    }};
}
pub(crate) use sum;

/// Numbers that rows over tokens are padded to: a register full of any machine.
pub const PAD: usize = 16;

/// Replaces the first `seen` scores s by e^{s − max} and the rest of their registers by 0; 1/Σ.
#[inline(always)]
pub fn softmax<T: Real, S: Simd>(simd: S, scores: &mut [T], seen: usize) -> T {
    let used = seen.next_multiple_of(PAD);
    scores[seen..used].fill(T::LEAST);
    let scores = &mut scores[..used];
    let mut most = T::splat(simd, T::LEAST);
    for scores in T::vectors::<S>(scores) {
        most = T::larger(simd, most, *scores);
    }
    let most = T::largest(simd, most);
    for score in scores.iter_mut() {
        *score = T::exponential::<S>(*score - most);
    }
    T::ONE / sum!(T, S, simd; score in scores => score)
}

/// n = γ (x − mean)/√(var + ε) + β for rows of as many numbers as γ has (a multiple of 64).
pub struct Normalise<'a, T> {
    /// Rows to normalise.
    pub x: &'a [T],
    /// γ.
    pub gain: &'a [T],
    /// β.
    pub bias: &'a [T],
    /// ε.
    pub epsilon: T,
    /// n.
    pub out: &'a mut [T],
    /// Where to leave (x − mean)/√(var + ε) and 1/√(var + ε), for the reverse pass.
    pub saved: Option<(&'a mut [T], &'a mut [T])>,
}

impl<T: Real> WithSimd for Normalise<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, gain, bias, epsilon, out, mut saved } = self;
        let width = gain.len();
        let count = T::of(width as f64);
        for (row, (x, out)) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)).enumerate() {
            let mean = sum!(T, S, simd; x in x => x) / count;
            let middle = T::splat(simd, mean);
            let squares = sum!(T, S, simd; x in x => {
                let distance = T::minus(simd, x, middle);
                T::times(simd, distance, distance)
            });
            let variance = squares / count;
            let scale = T::ONE / (variance + epsilon).sqrt();
            for ((out, x), (gain, bias)) in out.iter_mut().zip(x).zip(gain.iter().zip(bias)) {
                *out = T::fused::<S>((*x - mean) * scale, *gain, *bias);
            }
            if let Some((standard, scales)) = &mut saved {
                scales[row] = scale;
                for (standard, x) in standard[row * width..][..width].iter_mut().zip(x) {
                    *standard = (*x - mean) * scale;
                }
            }
        }
    }
}

/// n = γ s + β again, from the standardised s that was saved.
pub struct Renormalise<'a, T> {
    /// s.
    pub standard: &'a [T],
    /// γ.
    pub gain: &'a [T],
    /// β.
    pub bias: &'a [T],
    /// n.
    pub out: &'a mut [T],
}

impl<T: Real> WithSimd for Renormalise<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let width = self.gain.len();
        for (standard, out) in self.standard.chunks_exact(width).zip(self.out.chunks_exact_mut(width)) {
            for ((out, s), (gain, bias)) in out.iter_mut().zip(standard).zip(self.gain.iter().zip(self.bias)) {
                *out = T::fused::<S>(*s, *gain, *bias);
            }
        }
    }
}

/// Reverse pass of [`Normalise`]: adds ∂/∂x, and ∂/∂γ and ∂/∂β.
pub struct NormaliseBack<'a, T> {
    /// Gradient of n.
    pub slope: &'a [T],
    /// What the forward pass saved.
    pub saved: (&'a [T], &'a [T]),
    /// γ.
    pub gain: &'a [T],
    /// Gradient of x, added to.
    pub x: &'a mut [T],
    /// Gradients of γ and β, added to.
    pub parameters: Option<(&'a mut [T], &'a mut [T])>,
}

impl<T: Real> WithSimd for NormaliseBack<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { slope, saved: (standard, scales), gain, x, mut parameters } = self;
        let width = gain.len();
        let count = T::of(width as f64);
        let rows = slope.chunks_exact(width).zip(standard.chunks_exact(width)).zip(x.chunks_exact_mut(width));
        for (((slope, standard), x), scale) in rows.zip(scales) {
            let mean = sum!(T, S, simd; slope in slope, gain in gain => T::times(simd, slope, gain)) / count;
            let along = sum!(T, S, simd; slope in slope, gain in gain, standard in standard => {
                T::times(simd, T::times(simd, slope, gain), standard)
            }) / count;
            for ((x, slope), (standard, gain)) in x.iter_mut().zip(slope).zip(standard.iter().zip(gain)) {
                *x = T::fused::<S>(*scale, *slope * *gain - mean - *standard * along, *x);
            }
            if let Some((gain, bias)) = &mut parameters {
                for ((gain, bias), (slope, standard)) in
                    gain.iter_mut().zip(bias.iter_mut()).zip(slope.iter().zip(standard))
                {
                    *gain = T::fused::<S>(*slope, *standard, *gain);
                    *bias += *slope;
                }
            }
        }
    }
}

/// x ← GELU(x).
pub struct Gelu<'a, T>(pub &'a mut [T]);

impl<T: Real> WithSimd for Gelu<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for x in self.0.iter_mut() {
            *x = T::gelu::<S>(*x);
        }
    }
}

/// out = GELU(x).
pub struct GeluInto<'a, T> {
    /// Arguments.
    pub x: &'a [T],
    /// Values.
    pub out: &'a mut [T],
}

impl<T: Real> WithSimd for GeluInto<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (out, x) in self.out.iter_mut().zip(self.x) {
            *out = T::gelu::<S>(*x);
        }
    }
}

/// Reverse pass of GELU: out = GELU(x) once more, and slope ← slope·GELU′(x).
pub struct GeluBack<'a, T> {
    /// Arguments.
    pub x: &'a [T],
    /// Values.
    pub out: &'a mut [T],
    /// Gradient of the values, then of the arguments.
    pub slope: &'a mut [T],
}

impl<T: Real> WithSimd for GeluBack<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for ((out, slope), x) in self.out.iter_mut().zip(self.slope).zip(self.x) {
            let (value, derivative) = T::gelu_and_slope::<S>(*x);
            *out = value;
            *slope = *slope * derivative;
        }
    }
}

/// `sums` += every row of `rows`.
pub fn add_rows<T: Real>(rows: &[T], sums: &mut [T]) {
    vectorise(AddRows { rows, sums });
}

struct AddRows<'a, T> {
    rows: &'a [T],
    sums: &'a mut [T],
}

impl<T: Real> WithSimd for AddRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for row in self.rows.chunks_exact(self.sums.len()) {
            for (sum, x) in self.sums.iter_mut().zip(row) {
                *sum += *x;
            }
        }
    }
}

/// The map of one token, x → z = (x − b) e^{−a} or back: x = z e^a + b.
pub struct Affine<'a, T> {
    /// x, replaced by z; or z, replaced by x.
    pub token: &'a mut [T],
    /// (a, b), or b alone where the map only shifts.
    pub outputs: &'a [T],
    /// Whether this is the way back.
    pub inverse: bool,
}

impl<T: Real> WithSimd for Affine<'_, T> {
    /// Σ_d a_d.
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let Self { token, outputs, inverse } = self;
        if outputs.len() == token.len() {
            for (x, b) in token.iter_mut().zip(outputs) {
                *x = if inverse { *x + *b } else { *x - *b };
            }
            return 0.0;
        }
        let (scales, shifts) = outputs.split_at(token.len());
        if inverse {
            for (x, (a, b)) in token.iter_mut().zip(scales.iter().zip(shifts)) {
                *x = T::fused::<S>(*x, T::exponential::<S>(*a), *b);
            }
        } else {
            for (x, (a, b)) in token.iter_mut().zip(scales.iter().zip(shifts)) {
                *x = (*x - *b) * T::exponential::<S>(-*a);
            }
        }
        wide_sum(scales)
    }
}

/// Reverse pass of [`Affine`] from x to z.
pub struct AffineBack<'a, T> {
    /// Gradient of z, then of x.
    pub slope: &'a mut [T],
    /// z.
    pub z: &'a [T],
    /// (a, b), or b alone.
    pub outputs: &'a [T],
    /// Gradient of the token's log-determinant.
    pub log_det: T,
    /// Gradients of (a, b), or of b alone.
    pub out: &'a mut [T],
}

impl<T: Real> WithSimd for AffineBack<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { slope, z, outputs, log_det, out } = self;
        if outputs.len() == slope.len() {
            out.iter_mut().zip(slope).for_each(|(out, slope)| *out = -*slope);
            return;
        }
        let (scales, shifts) = out.split_at_mut(slope.len());
        for ((slope, z), ((a, scale), shift)) in slope.iter_mut().zip(z).zip(outputs.iter().zip(scales).zip(shifts)) {
            *scale = -(*z * *slope) - log_det;
            *slope = *slope * T::exponential::<S>(-*a);
            *shift = -*slope;
        }
    }
}

/// Σ_d a_d in f64.
#[inline(always)]
fn wide_sum<T: Real>(a: &[T]) -> f64 {
    // Eight sums side by side.
    let (chunks, rest) = a.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for a in chunks {
        for i in 0..8 {
            sums[i] += a[i].wide();
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|a| a.wide()).sum::<f64>()
}

//! Kernels on rows of numbers between the matrix products: softmax, layer normalisation, GELU, the
//! affine map of a token, and their reverse passes.

use pulp::Simd;

use super::{Real, kernel};

/// Sums an expression over the registers of some slices, by two sums side by side. Not a function
/// of a closure, which would be compiled without the instruction set of its caller.
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

/// Rows over tokens are padded to a multiple of this: the lanes of the widest registers.
pub const PAD: usize = 16;

/// Ends the first `seen` scores of a row for [`softmax`]: the rest up to a multiple of [`PAD`] weighs
/// nothing. Some rows before their softmax: a register is read faster long after its parts were
/// written.
#[inline(always)]
pub fn end_scores<T: Real>(scores: &mut [T], seen: usize) {
    scores[seen..seen.next_multiple_of(PAD)].fill(T::LEAST);
}

/// Replaces the first `seen` scores s, ended by [`end_scores`], by e^{s − max}, and the rest up to a
/// multiple of [`PAD`] by 0. Returns 1/Σ.
#[inline(always)]
pub fn softmax<T: Real, S: Simd>(simd: S, scores: &mut [T], seen: usize) -> T {
    let used = seen.next_multiple_of(PAD);
    let scores = &mut scores[..used];
    let mut most = T::splat(simd, T::LEAST);
    for scores in T::vectors::<S>(scores) {
        most = T::larger(simd, most, *scores);
    }
    let most = T::largest(simd, most);
    // By registers of the widest kind: a loop of any length would take short rows by narrower ones.
    for scores in scores.as_chunks_mut::<PAD>().0 {
        for score in scores {
            *score = T::falling_exponential::<S>(*score - most);
        }
    }
    T::ONE / sum!(T, S, simd; score in scores => score)
}

kernel! {
    /// n = γ (x − mean)/√(var + ε) + β for rows as long as γ (a multiple of 64), from `affine` =
    /// [γ, β]. `saved` receives (x − mean)/√(var + ε) and 1/√(var + ε) for the reverse pass.
    pub normalise<T, S, simd>(
        x: &'a [T],
        affine: [&'a [T]; 2],
        epsilon: T,
        out: &'a mut [T],
        saved: Option<(&'a mut [T], &'a mut [T])>,
    ) {
        let ([gain, bias], mut saved) = (affine, saved);
        let width = gain.len();
        let count = T::of(width as f64);
        for (row, (x, out)) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)).enumerate() {
            let mean = sum!(T, S, simd; x in x => x) / count;
            let middle = T::splat(simd, mean);
            let squares = sum!(T, S, simd; x in x => {
                let distance = T::minus(simd, x, middle);
                T::times(simd, distance, distance)
            });
            let scale = T::ONE / (squares / count + epsilon).sqrt();
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

kernel! {
    /// n = γ s + β again, from the standardised s that [`normalise`] saved and `affine` = [γ, β].
    pub renormalise<T, S>(standard: &'a [T], affine: [&'a [T]; 2], out: &'a mut [T]) {
        let [gain, bias] = affine;
        let width = gain.len();
        for (standard, out) in standard.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            for ((out, s), (gain, bias)) in out.iter_mut().zip(standard).zip(gain.iter().zip(bias)) {
                *out = T::fused::<S>(*s, *gain, *bias);
            }
        }
    }
}

kernel! {
    /// Reverse pass of [`normalise`]: from the gradient `slope` of n and what was saved, adds ∂/∂x
    /// to `x`, and ∂/∂γ and ∂/∂β to `parameters`.
    pub normalise_backward<T, S, simd>(
        slope: &'a [T],
        saved: (&'a [T], &'a [T]),
        gain: &'a [T],
        x: &'a mut [T],
        parameters: [&'a mut [T]; 2],
    ) {
        let ((standard, scales), [gain_sums, bias_sums]) = (saved, parameters);
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
            let sums = gain_sums.iter_mut().zip(bias_sums.iter_mut());
            for ((gain, bias), (slope, standard)) in sums.zip(slope.iter().zip(standard)) {
                *gain = T::fused::<S>(*slope, *standard, *gain);
                *bias += *slope;
            }
        }
    }
}

kernel! {
    /// x ← GELU(x).
    pub gelu<T, S>(x: &'a mut [T]) {
        for x in x.iter_mut() {
            *x = T::gelu::<S>(*x);
        }
    }
}

kernel! {
    /// out = GELU(x).
    pub gelu_into<T, S>(x: &'a [T], out: &'a mut [T]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = T::gelu::<S>(*x);
        }
    }
}

kernel! {
    /// Reverse pass of GELU: out = GELU(x) once more, and slope ← slope·GELU′(x).
    pub gelu_backward<T, S>(x: &'a [T], out: &'a mut [T], slope: &'a mut [T]) {
        for ((out, slope), x) in out.iter_mut().zip(slope).zip(x) {
            let (value, derivative) = T::gelu_and_slope::<S>(*x);
            *out = value;
            *slope = *slope * derivative;
        }
    }
}

kernel! {
    /// `sums` += every row of `rows`.
    pub add_rows<T, S>(rows: &'a [T], sums: &'a mut [T]) {
        for row in rows.chunks_exact(sums.len()) {
            for (sum, x) in sums.iter_mut().zip(row) {
                *sum += *x;
            }
        }
    }
}

kernel! {
    /// The map of one token, x → z = (x − b) e^{−a}, or with `inverse` z → x = z e^a + b, in place.
    /// `outputs` are (a, b), or b alone where the map only shifts. Returns Σ_d a_d.
    pub affine<T, S>(token: &'a mut [T], outputs: &'a [T], inverse: bool) -> f64 {
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

kernel! {
    /// Reverse pass of [`affine`] from x to z: `slope` goes from the gradient of z to that of x,
    /// and `out` receives the gradients of `outputs`. `log_det` is the gradient of the token's
    /// log-determinant.
    pub affine_backward<T, S>(slope: &'a mut [T], z: &'a [T], outputs: &'a [T], log_det: T, out: &'a mut [T]) {
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

//! The functions of one variable that a TarFlow needs, as branch-free polynomials: e^x and GELU(x)
//! = x Φ(x).

use pulp::Simd;

use super::real::Real;

/// Σ_i c_i x^i.
#[inline(always)]
fn polynomial<T: Real, S: Simd>(x: T, c: &[T]) -> T {
    let mut sum = c[c.len() - 1];
    for &c in c[..c.len() - 1].iter().rev() {
        sum = T::fused::<S>(sum, x, c);
    }
    sum
}

/// x where it is at most `most` (or NaN).
#[inline(always)]
fn at_most<T: Real>(x: T, most: T) -> T {
    if x > most { most } else { x }
}

/// x where it is at least `least` (or NaN).
#[inline(always)]
fn at_least<T: Real>(x: T, least: T) -> T {
    if x < least { least } else { x }
}

/// log₂ 2Φ(−u) / u for 0 ≤ u ≤ 5.6, minimax in u·Φ(−u) (9e-9).
const LOG_TAIL: [f32; 8] = [
    -1.151_111,
    -0.459_162_15,
    -0.052_627_6,
    0.007_245_406_5,
    -0.000_272_064_53,
    -0.000_131_477_86,
    2.805_792_6e-5,
    -1.902_149_5e-6,
];
/// 2^r for |r| ≤ ½, relative 1e-7.
const EXP2: [f32; 6] = [1.0, std::f32::consts::LN_2, 0.240_222_81, 0.055_505_6, 0.009_669_708, 0.001_330_026_4];
/// e^r for |r| ≤ ½ ln 2, relative 1e-8.
const EXP_F32: [f32; 7] = [1.0, 1.0, 0.5, 0.166_664_15, 0.041_666_217, 0.008_375_129, 0.001_394_858_1];

/// 1.5·2²³: adding it leaves the nearest integer in the low bits.
const ROUND_F32: f32 = 12_582_912.0;
/// ln 2 in two parts, the first short enough for its products with exponents to be exact.
const LN_2_HEAD_F32: f32 = 355.0 / 512.0;
/// ln 2 − 355/512.
const LN_2_REST_F32: f32 = -2.121_944_4e-4;
/// The same in f64.
const LN_2_HEAD_F64: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
/// ln 2 less that.
const LN_2_REST_F64: f64 = 1.908_214_929_270_587_7e-10;
/// 1.5·2⁵².
const ROUND_F64: f64 = 6_755_399_441_055_744.0;

/// Φ(−u) for 0 ≤ u ≤ 5.6.
#[inline(always)]
fn tail_f32<S: Simd>(u: f32) -> f32 {
    let t = u * polynomial::<f32, S>(u, &LOG_TAIL);
    let shifted = t + ROUND_F32;
    let fraction = polynomial::<f32, S>(t - (shifted - ROUND_F32), &EXP2);
    // The exponent n − 1 for 2^n / 2; −28 ≤ n ≤ 0, so the result is a normal number.
    f32::from_bits(fraction.to_bits().wrapping_add(shifted.to_bits().wrapping_sub(1) << 23))
}

/// e^x, good to 2 units in the last place; 0 and ∞ beyond the range.
#[inline(always)]
pub fn exp_f32<S: Simd>(x: f32) -> f32 {
    // Beyond these the result is 0 or ∞, by way of two factors whose exponents are in range.
    let x = at_least(at_most(x, 90.0), -105.0);
    let shifted = f32::fused::<S>(x, std::f32::consts::LOG2_E, ROUND_F32);
    let n = shifted - ROUND_F32;
    let r = f32::fused::<S>(n, -LN_2_HEAD_F32, x);
    let r = f32::fused::<S>(n, -LN_2_REST_F32, r);
    let bits = shifted.to_bits() as i32 - ROUND_F32.to_bits() as i32;
    let half = bits >> 1;
    let power = |n: i32| f32::from_bits(((n + 127) << 23) as u32);
    polynomial::<f32, S>(r, &EXP_F32) * power(half) * power(bits.wrapping_sub(half))
}

/// e^x for x ≤ 0, as [`exp_f32`], but 0 where that is no normal number.
#[inline(always)]
pub fn falling_exp_f32<S: Simd>(x: f32) -> f32 {
    let x = at_least(x, -88.0);
    let shifted = f32::fused::<S>(x, std::f32::consts::LOG2_E, ROUND_F32);
    let n = shifted - ROUND_F32;
    let r = f32::fused::<S>(n, -LN_2_HEAD_F32, x);
    let r = f32::fused::<S>(n, -LN_2_REST_F32, r);
    // 2^n, of which −127 leaves 0.
    let power = f32::from_bits(shifted.to_bits().wrapping_sub(ROUND_F32.to_bits() - 127) << 23);
    polynomial::<f32, S>(r, &EXP_F32) * power
}

/// GELU as relu(x) − u Φ(−u), u = |x|: what is approximated is small wherever x is large, and so is
/// its error.
#[inline(always)]
pub fn gelu_f32<S: Simd>(x: f32) -> f32 {
    let u = at_most(x.abs(), 5.6);
    f32::fused::<S>(-u, tail_f32::<S>(u), at_least(x, 0.0))
}

/// GELU and its derivative Φ(x) + x φ(x).
#[inline(always)]
pub fn gelu_and_slope_f32<S: Simd>(x: f32) -> (f32, f32) {
    let u = at_most(x.abs(), 5.6);
    let tail = tail_f32::<S>(u);
    let cumulative = if x < 0.0 { tail } else { 1.0 - tail };
    let density = FRAC_1_SQRT_TAU as f32 * falling_exp_f32::<S>(-0.5 * x * x);
    (f32::fused::<S>(-u, tail, at_least(x, 0.0)), f32::fused::<S>(x, density, cumulative))
}

/// 1/√(2π).
const FRAC_1_SQRT_TAU: f64 = 0.398_942_280_401_432_7;

/// (1 + 2y) erfcx(y) in t = (y − 4)/(y + 4), relative 1e-16.
const ERFCX: [f64; 25] = [
    1.2329951186255526,
    -0.1396211168405623,
    0.015379652102619604,
    0.06809705425466908,
    -0.10103906603630056,
    0.0937328349990944,
    -0.06633036581218697,
    0.03716751552655567,
    -0.016197734059799265,
    0.005031970067657489,
    -0.0007577732613730956,
    -0.00019925714661091188,
    0.0001506214900124047,
    -2.4397746422436416e-05,
    -1.1221287012353486e-05,
    5.706604414895734e-06,
    2.919733377963012e-07,
    -8.210939042560568e-07,
    7.746992727017941e-08,
    1.0633855618594884e-07,
    -2.05606492756992e-08,
    -1.234686604382353e-08,
    3.1695881915648173e-09,
    9.311744978232572e-10,
    -2.659599690242689e-10,
];
/// e^r for |r| ≤ ½ ln 2, relative 2e-17.
const EXP_F64: [f64; 12] = [
    1.0,
    1.0,
    0.5000000000000019,
    0.16666666666666702,
    0.04166666666648808,
    0.008333333333309526,
    0.0013888888952318045,
    0.00019841269909219843,
    2.480148547921643e-05,
    2.755722495611072e-06,
    2.7632640675430235e-07,
    2.5114870219497476e-08,
];

/// Φ(−u) for u ≥ 0, given e^{−u²/2}.
#[inline(always)]
fn tail_f64<S: Simd>(u: f64, bell: f64) -> f64 {
    let y = at_most(u, 1e8) * std::f64::consts::FRAC_1_SQRT_2;
    let t = (y - 4.0) / (y + 4.0);
    0.5 * bell * polynomial::<f64, S>(t, &ERFCX) / (1.0 + 2.0 * y)
}

/// e^x, good to 3 units in the last place; 0 and ∞ beyond the range.
#[inline(always)]
pub fn exp_f64<S: Simd>(x: f64) -> f64 {
    let x = at_least(at_most(x, 712.0), -747.0);
    let shifted = f64::fused::<S>(x, std::f64::consts::LOG2_E, ROUND_F64);
    let n = shifted - ROUND_F64;
    let r = f64::fused::<S>(n, -LN_2_HEAD_F64, x);
    let r = f64::fused::<S>(n, -LN_2_REST_F64, r);
    let bits = shifted.to_bits() as i64 - ROUND_F64.to_bits() as i64;
    let half = bits >> 1;
    let power = |n: i64| f64::from_bits(((n + 1023) << 52) as u64);
    polynomial::<f64, S>(r, &EXP_F64) * power(half) * power(bits.wrapping_sub(half))
}

/// e^x for x ≤ 0, as [`exp_f64`], but 0 where that is no normal number.
#[inline(always)]
pub fn falling_exp_f64<S: Simd>(x: f64) -> f64 {
    let x = at_least(x, -709.0);
    let shifted = f64::fused::<S>(x, std::f64::consts::LOG2_E, ROUND_F64);
    let n = shifted - ROUND_F64;
    let r = f64::fused::<S>(n, -LN_2_HEAD_F64, x);
    let r = f64::fused::<S>(n, -LN_2_REST_F64, r);
    // 2^n, of which −1023 leaves 0.
    let power = f64::from_bits(shifted.to_bits().wrapping_sub(ROUND_F64.to_bits() - 1023) << 52);
    polynomial::<f64, S>(r, &EXP_F64) * power
}

/// GELU, in the same way.
#[inline(always)]
pub fn gelu_f64<S: Simd>(x: f64) -> f64 {
    let u = x.abs();
    at_least(x, 0.0) - u * tail_f64::<S>(u, exp_f64::<S>(-0.5 * x * x))
}

/// GELU and its derivative Φ(x) + x φ(x).
#[inline(always)]
pub fn gelu_and_slope_f64<S: Simd>(x: f64) -> (f64, f64) {
    let bell = exp_f64::<S>(-0.5 * x * x);
    let u = x.abs();
    let tail = tail_f64::<S>(u, bell);
    let cumulative = if x < 0.0 { tail } else { 1.0 - tail };
    (at_least(x, 0.0) - u * tail, f64::fused::<S>(x, FRAC_1_SQRT_TAU * bell, cumulative))
}

#[cfg(test)]
mod tests {
    use pulp::{Simd, WithSimd};

    use super::super::real::Real;
    use crate::kernels::vectorise;

    struct Each<T, F>(Vec<T>, F);

    /// A function of one number, to be compiled for an instruction set.
    trait Function<T>: Copy {
        fn at<S: Simd>(self, x: T) -> T;
    }

    impl<T: Real, F: Function<T>> WithSimd for Each<T, F> {
        type Output = Vec<T>;

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> Vec<T> {
            self.0.iter().map(|&x| self.1.at::<S>(x)).collect()
        }
    }

    macro_rules! function {
        ($name:ident, $x:ident, $s:ident, $value:expr) => {
            #[derive(Clone, Copy)]
            struct $name;
            impl<T: Real> Function<T> for $name {
                #[inline(always)]
                fn at<$s: Simd>(self, $x: T) -> T {
                    $value
                }
            }
        };
    }
    function!(Exp, x, S, T::exponential::<S>(x));
    function!(FallingExp, x, S, T::falling_exponential::<S>(x));
    function!(Gelu, x, S, T::gelu::<S>(x));
    function!(GeluToo, x, S, T::gelu_and_slope::<S>(x).0);
    function!(Slope, x, S, T::gelu_and_slope::<S>(x).1);

    fn at<T: Real>(x: f64, f: impl Function<T>) -> f64 {
        vectorise(Each(vec![T::of(x)], f))[0].wide()
    }

    /// x, x Φ(x) and Φ(x) + x φ(x), by mpmath.
    const GELU: [[f64; 3]; 10] = [
        [-40.0, 0.0, 0.0],
        [-9.5, -9.969789321594476e-21, -9.469093473831384e-20],
        [-5.0, -1.4332578593959695e-06, -7.146946001792295e-06],
        [-2.25, -0.027505063473850584, -0.05918974397520698],
        [-0.75, -0.16997051428265114, 0.0007742782607648957],
        [0.0078125, 0.003930599256725333, 0.5062333463126785],
        [0.5, 0.34573123063700656, 0.8674951246561629],
        [1.625, 1.5403679209502683, 1.1210434062969812],
        [4.5, 4.4999847104709385, 1.0000685291618563],
        [12.0, 12.0, 1.0],
    ];

    #[test]
    fn gelu_and_its_slope_are_exact() {
        for [x, value, slope] in GELU {
            for found in [at::<f64>(x, Gelu), at::<f64>(x, GeluToo)] {
                assert!((found - value).abs() <= 4e-16 * (1.0 + x.abs()), "{x}: {found:e}");
            }
            assert!((at::<f64>(x, Slope) - slope).abs() <= 1e-15, "{x}");
            let rounding = value.abs() * f64::from(f32::EPSILON) / 2.0;
            for found in [at::<f32>(x, Gelu), at::<f32>(x, GeluToo)] {
                assert!((found - value).abs() <= 1e-7 + rounding, "{x}: {found:e}");
            }
            assert!((at::<f32>(x, Slope) - slope).abs() <= 4e-7, "{x}");
        }
    }

    #[test]
    fn exponentials_are_good_to_the_last_bits_and_leave_the_finite_range_as_they_should() {
        for i in -4000..4000 {
            let x = f64::from(i) * 0.0213;
            let narrow = f64::from(x as f32);
            let [wide, single] = [at::<f64>(x, Exp) / x.exp() - 1.0, at::<f32>(narrow, Exp) / narrow.exp() - 1.0];
            assert!(wide.abs() < 3.0 * f64::EPSILON, "{x}: {wide:e}");
            assert!(single.abs() < 2.0 * f64::from(f32::EPSILON), "{x}: {single:e}");
        }
        for x in (0..87_000).map(|i| f64::from(-i) * 1e-3) {
            let narrow = f64::from(x as f32);
            assert_eq!(at::<f32>(narrow, FallingExp), at::<f32>(narrow, Exp));
            assert_eq!(at::<f64>(8.1 * x, FallingExp), at::<f64>(8.1 * x, Exp));
        }
        for x in [-88.5, -104.0, -200.0, f64::NEG_INFINITY] {
            assert_eq!((at::<f32>(x, FallingExp), at::<f64>(8.1 * x, FallingExp)), (0.0, 0.0));
        }
        assert!(at::<f32>(f64::NAN, FallingExp).is_nan() && at::<f64>(f64::NAN, FallingExp).is_nan());
        assert_eq!((at::<f32>(-200.0, Exp), at::<f64>(-1000.0, Exp)), (0.0, 0.0));
        assert_eq!((at::<f32>(89.0, Exp), at::<f64>(710.0, Exp)), (f64::INFINITY, f64::INFINITY));
        assert_eq!((at::<f32>(f64::NEG_INFINITY, Exp), at::<f64>(f64::INFINITY, Exp)), (0.0, f64::INFINITY));
        // The smallest numbers are no zeros.
        let (narrow, wide) = (f64::from(f32::from_bits(1000)), f64::from_bits(1000));
        assert_eq!([at::<f32>(narrow, Exp), at::<f64>(wide, Exp)], [1.0; 2]);
        assert_eq!([at::<f32>(narrow, Gelu), at::<f64>(wide, Gelu)], [narrow / 2.0, wide / 2.0]);
        for lost in [at::<f32>(f64::NAN, Exp), at::<f64>(f64::NAN, Exp), at::<f32>(f64::NAN, Gelu)] {
            assert!(lost.is_nan());
        }
    }
}

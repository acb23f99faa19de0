//! The standard normal distribution: Φ, its complement Q, their logarithms and inverses, to full
//! double precision over the whole range, branch-free where blocks of points need them.
//!
//! Φ rests on erfcx(x) = exp(x²)·erfc(x): (1 + 2x)·erfcx(x) is one polynomial in (x − 4)/(x + 4)
//! for x ≥ 0. Φ⁻¹ is Wichura's AS241 (PPND16), beyond its range Newton's method on log Q.

use super::simd::{Arithmetic, Plain};

/// ln √(2π).
pub const LN_SQRT_TAU: f64 = 0.918_938_533_204_672_8;

/// Coefficients in s = (x − 4)/(x + 4) of (1 + 2x)·erfcx(x); relative error below 7e-17 (Chebyshev
/// interpolation at 60 digits).
const ERFCX: [f64; 25] = [
    1.2329951186255526,
    -0.13962111684056228,
    0.015379652102619974,
    0.06809705425466839,
    -0.10103906603631811,
    0.09373283499911264,
    -0.06633036581186058,
    0.037167515526338006,
    -0.01619773406293477,
    0.005031970069102256,
    -0.0007577732435942576,
    -0.0001992571524726518,
    0.00015062142608651945,
    -2.4397731143023292e-05,
    -1.1221135665965907e-05,
    5.70657829924074e-06,
    2.9173425573089733e-07,
    -8.210647933297337e-07,
    7.771943241086912e-08,
    1.0631817593818149e-07,
    -2.0725802488181963e-08,
    -1.2338731403798444e-08,
    3.2323973445082033e-09,
    9.297625263709659e-10,
    -2.764120233734578e-10,
];

/// Taylor coefficients 1/n! of exp, n = 0 … 13: exact to double precision on |r| ≤ ½ ln 2.
const EXP: [f64; 14] = {
    let (mut all, mut factorial, mut n) = ([1.0; 14], 1.0, 1);
    while n < 14 {
        factorial *= n as f64;
        all[n] = 1.0 / factorial;
        n += 1;
    }
    all
};

/// 1.5·2⁵²: adding and subtracting it rounds to an integer, left in the low bits in between.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

#[inline(always)]
fn polynomial<A: Arithmetic, const N: usize>(coefficients: &[f64; N], x: f64) -> f64 {
    let mut sum = coefficients[N - 1];
    let mut i = N - 1;
    while i > 0 {
        i -= 1;
        sum = A::mul_add(sum, x, coefficients[i]);
    }
    sum
}

/// e^x for x ≤ 709; 0 where the result would not be a normal number.
#[inline(always)]
pub fn exp<A: Arithmetic>(x: f64) -> f64 {
    let clamped = if x > -708.0 { x } else { -708.0 };
    let shifted = A::mul_add(clamped, std::f64::consts::LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    // ln 2 in two parts, the first with trailing zeros, so that n·LN2_HIGH is exact.
    let r = A::mul_add(n, -6.931_471_803_691_238e-1, clamped);
    let r = A::mul_add(n, -1.908_214_929_270_587_7e-10, r);
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    let value = polynomial::<A, 14>(&EXP, r) * scale;
    if x > -708.0 { value } else { 0.0 }
}

/// ln x for normal positive x.
#[inline(always)]
pub fn ln<A: Arithmetic>(x: f64) -> f64 {
    // x = m·2^e with m in [√½, √2): subtracting √½'s bits moves the exponent's boundary there.
    const SQRT_HALF: u64 = 0x3FE6_A09E_667F_3BCD;
    let offset = x.to_bits().wrapping_sub(SQRT_HALF);
    // Arithmetic shift, which 64-bit vectors lack: bias, shift, read a float's low bits.
    let biased = (offset.wrapping_add(1024 << 52)) >> 52;
    let e = f64::from_bits(biased | 0x4330_0000_0000_0000) - 4_503_599_627_370_496.0 - 1024.0;
    let m = f64::from_bits((offset & 0x000F_FFFF_FFFF_FFFF).wrapping_add(SQRT_HALF));
    // ln m = 2 artanh(s), s = (m − 1)/(m + 1), |s| < 0.172.
    const ARTANH: [f64; 10] = {
        let (mut all, mut k) = ([0.0; 10], 0);
        while k < 10 {
            all[k] = 2.0 / (2 * k + 3) as f64;
            k += 1;
        }
        all
    };
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let tail = s * s2 * polynomial::<A, 10>(&ARTANH, s2);
    let high = A::mul_add(e, 6.931_471_803_691_238e-1, 2.0 * s);
    high + A::mul_add(e, 1.908_214_929_270_587_7e-10, tail)
}

/// erfcx(x) for x ≥ 0.
#[inline(always)]
fn erfcx<A: Arithmetic>(x: f64) -> f64 {
    // One division for both quotients.
    let (near, far) = (x + 4.0, A::mul_add(2.0, x, 1.0));
    let inverse = 1.0 / (near * far);
    polynomial::<A, 25>(&ERFCX, (x - 4.0) * (far * inverse)) * (near * inverse)
}

/// Φ(x).
#[inline(always)]
pub fn cdf_with<A: Arithmetic>(x: f64) -> f64 {
    let a = x.abs() * std::f64::consts::FRAC_1_SQRT_2;
    let square = 0.5 * x * x;
    // What rounding took from the exponent, given back to first order.
    let lost = 0.5 * A::square_rest(x);
    let tail = 0.5 * erfcx::<A>(a) * exp::<A>(-square) * (1.0 - lost);
    if x > 0.0 { 1.0 - tail } else { tail }
}

/// AS241 on the middle of (0, 1): q·A(r) and B(r), r = 0.180625 − q², q = p − ½. The quotient is
/// taken after choosing between this and the tails: there is one division instead of two.
#[inline(always)]
fn central_quantile<A: Arithmetic>(q: f64) -> (f64, f64) {
    const NUMERATOR: [f64; 8] = [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ];
    const DENOMINATOR: [f64; 8] = [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_545,
    ];
    let r = A::mul_add(-q, q, 0.180625);
    (q * polynomial::<A, 8>(&NUMERATOR, r), polynomial::<A, 8>(&DENOMINATOR, r))
}

/// AS241 on the tails, r = √(−ln p) ≤ 5.
#[inline(always)]
fn tail_quantile_near<A: Arithmetic>(r: f64) -> (f64, f64) {
    const NUMERATOR: [f64; 8] = [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        2.417_807_251_774_506e-1,
        2.272_384_498_926_918_4e-2,
        7.745_450_142_783_414e-4,
    ];
    const DENOMINATOR: [f64; 8] = [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        6.897_673_349_851e-1,
        1.481_039_764_274_800_8e-1,
        1.519_866_656_361_645_7e-2,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ];
    let r = r - 1.6;
    (polynomial::<A, 8>(&NUMERATOR, r), polynomial::<A, 8>(&DENOMINATOR, r))
}

/// AS241 far out, 5 < r = √(−ln p) ≤ 27.
#[inline(always)]
fn tail_quantile_far<A: Arithmetic>(r: f64) -> (f64, f64) {
    const NUMERATOR: [f64; 8] = [
        6.657_904_643_501_104,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        2.965_605_718_285_048_7e-1,
        2.653_218_952_657_612_4e-2,
        1.242_660_947_388_078_4e-3,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ];
    const DENOMINATOR: [f64; 8] = [
        1.0,
        5.998_322_065_558_879e-1,
        1.369_298_809_227_358e-1,
        1.487_536_129_085_061_5e-2,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ];
    let r = r - 5.0;
    (polynomial::<A, 8>(&NUMERATOR, r), polynomial::<A, 8>(&DENOMINATOR, r))
}

/// p below which Φ⁻¹ needs the far polynomial of AS241: e^−25.
pub const FAR: f64 = 1.388_794_386_496_402e-11;

/// Φ⁻¹(p), for min(p, 1 − p) ≥ [`FAR`]; `p` is clamped there.
#[inline(always)]
pub fn quantile_near<A: Arithmetic>(p: f64) -> f64 {
    let q = p - 0.5;
    let smaller = if q < 0.0 { p } else { 1.0 - p };
    let smaller = if smaller > FAR { smaller } else { FAR };
    let (numerator, denominator) = tail_quantile_near::<A>((-ln::<A>(smaller)).sqrt());
    choose::<A>(q, numerator, denominator)
}

/// Φ⁻¹(p) for every normal p in (0, 1).
#[inline(always)]
pub fn quantile_with<A: Arithmetic>(p: f64) -> f64 {
    let q = p - 0.5;
    let smaller = if q < 0.0 { p } else { 1.0 - p };
    let smaller = if smaller > f64::MIN_POSITIVE { smaller } else { f64::MIN_POSITIVE };
    let r = (-ln::<A>(smaller)).sqrt();
    let (near, far) = (tail_quantile_near::<A>(r), tail_quantile_far::<A>(r));
    choose::<A>(q, if r <= 5.0 { near.0 } else { far.0 }, if r <= 5.0 { near.1 } else { far.1 })
}

/// Φ⁻¹(½ + q) of the middle, or from the numerator and denominator of a tail.
#[inline(always)]
fn choose<A: Arithmetic>(q: f64, numerator: f64, denominator: f64) -> f64 {
    let (middle, under) = central_quantile::<A>(q);
    let signed = if q < 0.0 { -numerator } else { numerator };
    let inside = q.abs() <= 0.425;
    (if inside { middle } else { signed }) / (if inside { under } else { denominator })
}

/// φ(x).
pub fn density(x: f64) -> f64 {
    log_density(x).exp()
}

/// ln φ(x).
pub fn log_density(x: f64) -> f64 {
    -0.5 * x * x - LN_SQRT_TAU
}

/// Φ(x), without fused multiply-add, whose emulation would cost more than all the rest.
pub fn cdf(x: f64) -> f64 {
    cdf_with::<Plain>(x)
}

/// Q(x) = 1 − Φ(x).
pub fn tail(x: f64) -> f64 {
    cdf(-x)
}

/// ln Q(x), finite for every finite x.
pub fn log_tail(x: f64) -> f64 {
    if x.is_infinite() {
        if x > 0.0 { f64::NEG_INFINITY } else { 0.0 }
    } else if x > 5.0 {
        (0.5 * erfcx::<Plain>(x * std::f64::consts::FRAC_1_SQRT_2)).ln() - 0.5 * x * x
    } else if x > 0.0 {
        tail(x).ln()
    } else {
        (-cdf(x)).ln_1p()
    }
}

/// The same for blocks of points, without a branch.
#[inline(always)]
pub fn log_tail_with<A: Arithmetic>(x: f64) -> f64 {
    // Beyond that the polynomial's quotients leave the finite numbers.
    let a = if x.abs() < 1e150 { x.abs() } else { 1e150 };
    let beyond = ln::<A>(0.5 * erfcx::<A>(a * std::f64::consts::FRAC_1_SQRT_2)) - 0.5 * a * a;
    let up_to = ln::<A>(1.0 - exp::<A>(beyond));
    if x > 0.0 { beyond } else { up_to }
}

/// φ(x)/Q(x), the hazard rate, which is the mean of a standard normal variable beyond x.
pub fn hazard(x: f64) -> f64 {
    if x > 5.0 {
        (2.0 / std::f64::consts::PI).sqrt() / erfcx::<Plain>(x * std::f64::consts::FRAC_1_SQRT_2)
    } else {
        density(x) / tail(x)
    }
}

/// Φ⁻¹(p); ±∞ at 0 and 1.
pub fn quantile(p: f64) -> f64 {
    match p {
        _ if p <= 0.0 => f64::NEG_INFINITY,
        _ if p >= 1.0 => f64::INFINITY,
        _ => quantile_with::<Plain>(p),
    }
}

/// The x with ln Q(x) = `log_p`, for any `log_p` < 0, however small e^log_p is.
pub fn tail_quantile_of_log(log_p: f64) -> f64 {
    if log_p > -690.0 {
        return -quantile(log_p.exp());
    }
    // Q(x) ≈ φ(x)/x: a start good to 1/x², then Newton, whose step is exact to 1/x⁴ and more.
    let mut x = (-2.0 * log_p).sqrt();
    x = (-2.0 * (log_p + LN_SQRT_TAU + x.ln())).sqrt();
    for _ in 0..3 {
        x += (log_tail(x) - log_p) / hazard(x);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::super::simd::Fused;
    use super::*;

    /// Q at 50 digits (mpmath), to the last double.
    const TAILS: [(f64, f64); 9] = [
        (-3.0, 0.9986501019683699),
        (0.0, 0.5),
        (0.1, 0.460172162722971),
        (1.0, 0.15865525393145705),
        (2.5, 0.006209665325776132),
        (5.0, 2.866515718791939e-7),
        (10.0, 7.619853024160525e-24),
        (20.0, 2.7536241186062337e-89),
        (37.0, 5.725571222524577e-300),
    ];

    #[test]
    fn tails_agree_with_fifty_digits() {
        for (x, q) in TAILS {
            assert!((tail(x) / q - 1.0).abs() < 4e-15, "Q({x}) = {:e}, not {q:e}", tail(x));
            assert!((log_tail(x) - q.ln()).abs() < 4e-15 * (1.0 + q.ln().abs()), "ln Q({x})");
            assert!((cdf_with::<Fused>(-x) / q - 1.0).abs() < 4e-15);
        }
        for x in [-1e6, -40.0, -3.0, -0.1, 0.0, 0.1, 3.0, 5.0, 37.0, 1e3, 1e6] {
            let (one, other) = (log_tail_with::<Fused>(x), log_tail(x));
            assert!((one - other).abs() <= 4e-15 * (1.0 + other.abs()), "ln Q({x}): {one} and {other}");
        }
        assert!(log_tail_with::<Fused>(f64::INFINITY) < -1e299 && log_tail_with::<Fused>(f64::NEG_INFINITY) == 0.0);
        assert_eq!(tail(50.0), 0.0);
        assert_eq!((log_tail(f64::INFINITY), log_tail(f64::NEG_INFINITY)), (f64::NEG_INFINITY, 0.0));
        // ln Q(100), 50 digits.
        assert!((log_tail(100.0) + 5005.524208694205).abs() < 1e-11);
    }

    #[test]
    fn quantiles_invert_tails() {
        for i in 1..4000 {
            let x = -37.0 + 45.0 * f64::from(i) / 4000.0;
            let p = cdf(x);
            // dx = dp/φ: what one rounding of p moves x by, near p = 1.
            let tolerance = 1e-14 + 2e-16 * p / density(x).max(1e-300);
            assert!((quantile(p) - x).abs() < tolerance * (1.0 + x.abs()), "{x} {}", quantile(p));
            if p > FAR && 1.0 - p > FAR {
                assert!((quantile_near::<Fused>(p) - quantile(p)).abs() < tolerance * (1.0 + x.abs()));
            }
        }
        for x in [30.0, 40.0, 100.0, 1e4] {
            assert!((tail_quantile_of_log(log_tail(x)) / x - 1.0).abs() < 1e-14, "{x}");
        }
    }

    #[test]
    fn exp_and_ln_agree_with_the_library() {
        for i in 0..20_000 {
            let x = -700.0 + 0.07 * f64::from(i);
            assert!((exp::<Fused>(x) / x.exp() - 1.0).abs() < 4e-16, "{x}");
            assert!((exp::<Plain>(x) / x.exp() - 1.0).abs() < 1e-15, "{x}");
            let y = x.exp();
            assert!((ln::<Fused>(y) - y.ln()).abs() <= 3e-16 * y.ln().abs().max(0.5), "{y:e}");
        }
        assert_eq!(exp::<Fused>(-709.0), 0.0);
    }

    #[test]
    fn the_hazard_is_the_mean_beyond() {
        // ∫_x^∞ (Q(t)/Q(x)) dt = hazard(x) − x.
        for x in [-2.0, 0.0, 3.0, 8.0] {
            let step = 1e-3;
            let rest: f64 =
                (0..20_000).map(|i| (log_tail(x + (f64::from(i) + 0.5) * step) - log_tail(x)).exp() * step).sum();
            assert!((hazard(x) - x - rest).abs() < 1e-6);
        }
    }
}

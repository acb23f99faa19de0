//! Numbers as people read them. Units are the caller's to add.

pub use crate::amounts::duration;
use crate::measure::{Interval, wilson};
use crate::oracle::evaluate::Evaluation;

/// Four significant digits; powers of ten for the very small and very large.
pub fn sig4(value: f64) -> String {
    if value.is_nan() {
        return "undefined".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞".into() } else { "-∞".into() };
    }
    if value == 0.0 {
        return "0".into();
    }
    let magnitude = value.abs().log10().floor();
    if !(-4.0..6.0).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    let decimals = (3.0 - magnitude).max(0.0) as usize;
    format!("{value:.decimals$}")
}

/// The probability e^l, also where it is too small for a floating-point number.
pub fn exp_sig4(l: f64) -> String {
    if l > -600.0 || l == f64::NEG_INFINITY || l.is_nan() {
        return sig4(l.exp());
    }
    let log10 = l / std::f64::consts::LN_10;
    let mut exponent = log10.floor();
    let mut mantissa = 10f64.powf(log10 - exponent);
    if mantissa >= 9.9995 {
        mantissa = 1.0;
        exponent += 1.0;
    }
    format!("{mantissa:.3}e{exponent}")
}

/// A log-density: two decimals, since differences of nats decide posteriors.
pub fn nats(value: f64) -> String {
    match value.abs() {
        0.0..1e5 => format!("{value:.2}"),
        1e5..1e7 => format!("{value:.1}"),
        1e7..1e15 => format!("{value:.0}"),
        _ => sig4(value),
    }
}

/// A mean with half the width of its 95 % interval, both to two digits of the latter.
pub fn plus_minus(mean: f64, half_width: f64) -> String {
    if !(half_width.is_finite() && half_width > 0.0) {
        return sig4(mean);
    }
    let decimals = (1.0 - half_width.log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{mean:.decimals$} ± {half_width:.decimals$}")
}

/// A value in its unit with the ends of its 95 % interval, which need not be as far from it: to two digits of half its
/// width, four of each where that is no small number or the value is next to nothing.
pub fn with_ends(value: f64, (low, high): (f64, f64), unit: &str) -> String {
    let half = 0.5 * (high - low);
    let narrow = value.abs() >= 1e-3 && half > 1e-8 * value.abs() && half < 1e4;
    if !((1e-4..1e4).contains(&half) || narrow) {
        return format!("{} [{}, {}]", in_unit(sig4(value), unit), sig4(low), sig4(high));
    }
    let decimals = (1.0 - half.log10().floor()).max(0.0) as usize;
    format!("{} [{low:.decimals$}, {high:.decimals$}]", in_unit(format!("{value:.decimals$}"), unit))
}

/// A number with its unit, where it has one.
fn in_unit(number: String, unit: &str) -> String {
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

/// A value in its unit with its 95 % interval: ± half of it where the ends are as far from the value as they should be for that, else
/// the ends themselves.
pub fn estimate(value: f64, ends: (f64, f64), unit: &str) -> String {
    match is_even(value, ends) {
        true => in_unit(interval(value, 0.5 * (ends.1 - ends.0)), unit),
        false => with_ends(value, ends, unit),
    }
}

/// [`estimate`], where it is even as [`brief`] has it.
pub fn brief_estimate(value: f64, ends: (f64, f64), unit: &str) -> String {
    match is_even(value, ends) {
        true => in_unit(brief(value, 0.5 * (ends.1 - ends.0)), unit),
        false => with_ends(value, ends, unit),
    }
}

/// Returns whether the ends are equally far from a value, to what two digits of that tell.
fn is_even(value: f64, (low, high): (f64, f64)) -> bool {
    let half = 0.5 * (high - low);
    !half.is_finite() || half <= 1e-8 * value.abs() || (0.5 * (low + high) - value).abs() <= 0.02 * half
}

/// The share of images that are right, in per cent, with its 95 % interval.
pub fn right(e: &Evaluation) -> String {
    let Interval { low, high } = wilson(e.right(), e.images);
    format!("{:.2} % [{:.2}, {:.2}]", 100.0 * e.accuracy, 100.0 * low, 100.0 * high)
}

/// A value ± half its 95 % interval, to two digits of the latter; eight digits where that is next
/// to nothing. Very small and large ones share a power of ten.
pub fn interval(value: f64, half_width: f64) -> String {
    if !(value.is_finite() && value != 0.0 && half_width.is_finite()) {
        return plus_minus(value, half_width);
    }
    let exponent = value.abs().max(half_width).log10().floor();
    let power = if (-4.0..7.0).contains(&exponent) { 0.0 } else { exponent };
    let scale = 10f64.powf(-power);
    let (value, half_width) = (value * scale, half_width * scale);
    let sure = half_width <= 1e-8 * value.abs();
    let text = if sure { digits(value) } else { plus_minus(value, half_width) };
    match (power == 0.0, sure) {
        (true, _) => text,
        (false, true) => format!("{text}e{power}"),
        (false, false) => format!("({text})e{power}"),
    }
}

/// [`interval`], with five digits and no interval where that is narrower than the last of them: the
/// rest is shown on pointing at it.
pub fn brief(value: f64, half_width: f64) -> String {
    let plain = value.is_finite() && (1e-3..1e6).contains(&value.abs());
    if !(plain && half_width.is_finite() && half_width < 5e-5 * value.abs()) {
        return interval(value, half_width);
    }
    let decimals = (4.0 - value.abs().log10().floor()).max(0.0) as usize;
    format!("{value:.decimals$}")
}

/// How wide a 95 % interval is, as one number with its power of ten where it is small: what tells a
/// figure that is known to 1e-8 from one that is known to a point.
pub fn width(half_width: f64) -> Option<String> {
    (half_width.is_finite() && half_width > 0.0).then(|| match half_width < 1e-3 {
        true => format!("± {half_width:.0e}"),
        false => format!("± {half_width:.1}").replace("± 0.0", "± <0.1"),
    })
}

/// Up to eight significant digits, without zeros at the end.
pub fn digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return sig4(value);
    }
    let magnitude = value.abs().log10().floor();
    let trim = |text: String| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    if !(-4.0..9.0).contains(&magnitude) {
        let text = format!("{value:.7e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", trim(mantissa.to_owned()));
    }
    let decimals = (7.0 - magnitude).max(0.0) as usize;
    trim(format!("{value:.decimals$}"))
}

/// A time from microseconds up.
pub fn short_time(secs: f64) -> String {
    match secs {
        ..1e-3 => format!("{:.0} µs", secs * 1e6),
        1e-3..1.0 => format!("{:.1} ms", secs * 1e3),
        1.0..60.0 => format!("{secs:.2} s"),
        _ => duration(secs),
    }
}

/// Thousands apart.
pub fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_or_skew_shows_its_ends() {
        assert_eq!(estimate(0.0, (0.0, 0.192), "%"), "0.000 % [0.000, 0.192]");
        assert_eq!(brief_estimate(0.301, (0.0, 1.88), "%"), "0.30 % [0.00, 1.88]");
        assert_eq!(estimate(1.5, (1.25, 1.75), "nats"), "1.50 ± 0.25 nats");
        assert_eq!(brief_estimate(1.5, (1.5, 1.5), "%"), "1.5000 %");
        assert_eq!(estimate(f64::NAN, (f64::NAN, f64::NAN), "%"), "undefined %");
    }

    #[test]
    fn ends_have_two_digits_of_half_their_distance() {
        assert_eq!(with_ends(0.060_203, (0.027_09, 0.093_32), "nats"), "0.060 nats [0.027, 0.093]");
        assert_eq!(with_ends(2.15, (0.7006, 3.6), "%"), "2.1 % [0.7, 3.6]");
        assert_eq!(with_ends(17.61, (17.609_99, 17.610_02), "%"), "17.610000 % [17.609990, 17.610020]");
        assert_eq!(with_ends(0.5, (0.4, 0.7), ""), "0.50 [0.40, 0.70]");
        assert_eq!(
            with_ends(3e-7, (1e-7, 5e-7), "nats"),
            format!("{} nats [{}, {}]", sig4(3e-7), sig4(1e-7), sig4(5e-7))
        );
    }

    #[test]
    fn four_digits_whatever_the_size() {
        let pairs = [
            (0.12345678, "0.1235"),
            (1.0, "1.000"),
            (0.000123456, "0.0001235"),
            (0.0000123456, "1.235e-5"),
            (123456.0, "123456"),
            (-3.21987, "-3.220"),
            (0.0, "0"),
            (f64::NEG_INFINITY, "-∞"),
        ];
        for (value, text) in pairs {
            assert_eq!(sig4(value), text);
        }
    }

    #[test]
    fn probabilities_below_what_floats_hold_keep_their_digits() {
        assert_eq!(exp_sig4(-1000.0), "5.076e-435");
        assert_eq!(exp_sig4(0.5f64.ln()), "0.5000");
        assert_eq!(exp_sig4(f64::NEG_INFINITY), "0");
        assert_eq!(exp_sig4(-2000.0 * std::f64::consts::LN_10), "1.000e-2000");
    }

    #[test]
    fn errors_set_the_digits() {
        assert_eq!(plus_minus(0.123456, 0.00346), "0.1235 ± 0.0035");
        assert_eq!(plus_minus(1234.6, 21.0), "1235 ± 21");
    }

    #[test]
    fn intervals_leave_the_digits_that_are_sure() {
        let texts = [
            (3.592443, 0.0000028, "3.5924430 ± 0.0000028"),
            (2.5328e-23, 1e-38, "2.5328e-23"),
            (2.5328e-23, 1.2e-26, "(2.5328 ± 0.0012)e-23"),
            (0.0, 0.002, "0.0000 ± 0.0020"),
            (50.0, 0.0, "50"),
        ];
        for (value, half_width, text) in texts {
            assert_eq!(interval(value, half_width), text);
        }
        assert_eq!(["3.5924431", "90", "1e-7"], [3.592_443_09, 90.0, 1e-7].map(digits));
        assert_eq!(["12 µs", "3.4 ms", "1.50 s"], [1.2e-5, 3.4e-3, 1.5].map(short_time));
    }

    #[test]
    fn what_is_sure_is_brief_and_its_width_tells_degrees_apart() {
        let texts =
            [(3.592443, 0.0000028, "3.5924"), (25.7, 1.7, "25.7 ± 1.7"), (50.0, 0.0, "50.000"), (0.0, 0.0, "0")];
        for (value, half_width, text) in texts {
            assert_eq!(brief(value, half_width), text);
        }
        assert_eq!(brief(2.5328e-23, 1e-38), interval(2.5328e-23, 1e-38));
        assert_eq!(
            [2.8e-6, 1.72, 0.03, 0.0].map(width),
            [Some("± 3e-6"), Some("± 1.7"), Some("± <0.1"), None].map(|text| text.map(str::to_owned))
        );
    }

    #[test]
    fn nats_keep_two_decimals_while_there_is_room() {
        let values = [-1234.567, -123_456.78, -20_471_101.5, f64::NEG_INFINITY];
        assert_eq!(values.map(nats), ["-1234.57", "-123456.8", "-20471102", "-∞"]);
    }

    #[test]
    fn counts_have_their_thousands_apart() {
        assert_eq!([7, 1234, 1234567].map(count), ["7", "1,234", "1,234,567"]);
    }
}

//! Where an axis has marks, and how numbers are written on it.

use super::Scale;

/// A mark on an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Where, in the axis' own numbers.
    pub at: f64,
    /// What is written there.
    pub label: String,
}

/// Shortest span with room for marks in f64, as a share of the largest number on the axis.
const FINEST: f64 = 1e-11;

/// About `about_n` marks inside `range` (either order), ascending, at round numbers: steps of 1, 2
/// or 5 times a power of ten; on a log axis whole decades, with 2 and 5 between them where decades
/// are few, and linear steps where even those are. None for a range without finite width or, on a
/// log axis, without positive ends.
pub fn ticks(range: [f64; 2], scale: Scale, about_n: usize) -> Vec<Tick> {
    let [low, high] = [range[0].min(range[1]), range[0].max(range[1])];
    let usable = scale.has(low) && scale.has(high) && (high - low).is_finite();
    if !usable || high - low <= FINEST * low.abs().max(high.abs()) {
        return Vec::new();
    }
    let wanted = about_n.max(2);
    let at = match scale {
        Scale::Linear => steps(low, high, wanted),
        Scale::Log10 => decades(low, high, wanted),
    };
    labelled(at)
}

/// Places inside `range` for unlabelled marks: 2 … 9 times each power of ten of a log axis that
/// spans one to eight decades; none on a linear axis.
pub fn minor_ticks(range: [f64; 2], scale: Scale) -> Vec<f64> {
    let [low, high] = [range[0].min(range[1]), range[0].max(range[1])];
    let usable = scale == Scale::Log10 && scale.has(low) && scale.has(high);
    if !usable || !(1.0..=8.0).contains(&(high / low).log10()) {
        return Vec::new();
    }
    let (first, last) = (low.log10().floor() as i32, high.log10().floor() as i32);
    let all = (first..=last).flat_map(|power| (2..10).map(move |times| times as f64 * ten_to(power)));
    all.filter(|at| (low..=high).contains(at)).collect()
}

/// A number as text: thousands set apart, powers of ten below 1e-4 and from 1e6 on.
pub fn number(value: f64) -> String {
    // The end of an interval that has none.
    if value.is_infinite() {
        return if value > 0.0 { "∞" } else { "−∞" }.into();
    }
    labelled(vec![value]).pop().map_or_else(String::new, |tick| tick.label)
}

/// 10^power to the last bit; `powi` loses some.
fn ten_to(power: i32) -> f64 {
    format!("1e{power}").parse().unwrap_or(f64::NAN)
}

/// Multiples of the round step that gives closest to `wanted` of them.
fn steps(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let power = ((high - low) / wanted as f64).log10().floor() as i32;
    let count = |&(times, power): &(f64, i32)| (high - low) / (times * ten_to(power));
    let mut candidates = [(1.0, power), (2.0, power), (5.0, power), (1.0, power + 1), (2.0, power + 1)];
    let miss = |candidate: &(f64, i32)| (count(candidate) / wanted as f64).ln().abs();
    candidates.sort_by(|a, b| miss(a).total_cmp(&miss(b)));
    // A coarse step may have a single multiple inside; one that is finer than wanted has two.
    let all = candidates.into_iter().map(|(times, power)| multiples(low, high, times, power));
    all.into_iter().find(|at| at.len() > 1).unwrap_or_default()
}

/// Multiples of times·10^power inside.
fn multiples(low: f64, high: f64, times: f64, power: i32) -> Vec<f64> {
    let step = times * ten_to(power);
    let (first, last) = ((low / step).floor(), (high / step).ceil());
    // Division by a whole number rounds once: 3 steps of 0.1 are 0.3. Adding zero makes −0 a 0.
    let at = |i: f64| if power < 0 { i * times / ten_to(-power) } else { i * step };
    (0..=(last - first) as usize).map(|i| at(first + i as f64) + 0.0).filter(|at| (low..=high).contains(at)).collect()
}

/// Powers of ten, thinned where they are many, with 2 and 5 between where they are few.
fn decades(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let inside = |times: &[f64], every: i32| -> Vec<f64> {
        let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
        let all = powers.flat_map(|power| times.iter().map(move |times| times * ten_to(power)));
        all.filter(|at| (low..=high).contains(at)).collect()
    };
    let whole = inside(&[1.0], 1);
    if whole.len() > wanted + wanted / 2 {
        let every = (whole.len() as f64 / wanted as f64).ceil() as i32;
        return inside(&[1.0], every);
    }
    if whole.len() * 2 >= wanted && whole.len() >= 3 {
        return whole;
    }
    let finer = inside(&[1.0, 2.0, 5.0], 1);
    if finer.len() >= 3 { finer } else { steps(low, high, wanted) }
}

/// The marks with their labels, all written in the same manner.
fn labelled(at: Vec<f64>) -> Vec<Tick> {
    let largest = at.iter().fold(0.0_f64, |most, at| most.max(at.abs()));
    let plain = |value: f64| value == 0.0 || (1e-4..1e6).contains(&value.abs());
    // One power of ten for all marks that are close together.
    let close = at.iter().all(|&value| value == 0.0 || value.abs() * 1e3 > largest);
    let label = |&value: &f64| match () {
        () if close && (1e-3..1e6).contains(&largest) || plain(value) => grouped(value),
        () => powered(value),
    };
    let labels: Vec<String> = at.iter().map(label).collect();
    at.into_iter().zip(labels).map(|(at, label)| Tick { at, label }).collect()
}

/// Plain digits: `12,500`, `0.05`, `−3`.
fn grouped(value: f64) -> String {
    // Fourteen digits hide the last bits of sums and products, which no reader asked for.
    let digits = format!("{:.13e}", value.abs()).parse::<f64>().unwrap_or(value).to_string();
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut text = String::new();
    for (place, digit) in whole.chars().enumerate() {
        let left = whole.len() - place;
        if place > 0 && left % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("−{text}{rest}") } else { text + rest }
}

/// With a power of ten: `2×10⁻⁵`, `10⁶`.
fn powered(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let text = format!("{:.13e}", value.abs());
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    let raised: String = power.chars().map(superscript).collect();
    let sign = if value < 0.0 { "−" } else { "" };
    if digits == "1" { format!("{sign}10{raised}") } else { format!("{sign}{digits}×10{raised}") }
}

fn superscript(digit: char) -> char {
    match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '0'..='9' => char::from_u32('⁰' as u32 + digit as u32 - '0' as u32).unwrap_or(digit),
        other => other,
    }
}

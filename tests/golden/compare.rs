//! Two digests beside each other.

use serde_json::Value;

/// How far numbers with a fraction may be apart: so much of the larger, or so much at all. Whole numbers are counts and must agree.
#[derive(Debug, Clone, Copy)]
pub struct Tolerance {
    relative: f64,
    absolute: f64,
}

/// No sign may change.
pub const EXACT: Tolerance = Tolerance { relative: 0.0, absolute: 0.0 };
/// Sums in 64 bits, integrals and their intervals.
pub const WIDE: Tolerance = Tolerance { relative: 1e-6, absolute: 1e-12 };
/// What comes from one pass of a flow in 32 bits.
pub const CLOSE: Tolerance = Tolerance { relative: 2e-4, absolute: 1e-4 };
/// What was trained: rounding grows with every step. One of 60 test images may be decided otherwise.
pub const TRAINED: Tolerance = Tolerance { relative: 2e-2, absolute: 2e-2 };

/// What was trained on images that a network chose: another choice between near ties changes one of forty.
pub const CHOSEN: Tolerance = Tolerance { relative: 0.1, absolute: 0.1 };
/// Residues of rounding, whose digits are noise: they stay within a factor of thirty.
pub const NOISE: Tolerance = Tolerance { relative: 0.97, absolute: 1e-9 };

/// Keys of residues, and the word before one in a line.
const RESIDUES: [&str; 4] = ["max_posterior_error", "max_log_likelihood_error", "max_drift", "within"];

impl Tolerance {
    fn holds(self, a: f64, b: f64) -> bool {
        (a - b).abs() <= self.absolute.max(self.relative * a.abs().max(b.abs()))
    }

    fn exact(self) -> bool {
        self.absolute == 0.0
    }
}

/// What differs, a line each, at most twenty.
pub fn differences(expected: &Value, found: &Value, tolerance: Tolerance) -> Vec<String> {
    let mut all = Vec::new();
    values("", expected, found, tolerance, &mut all);
    all.truncate(20);
    all
}

fn values(at: &str, a: &Value, b: &Value, tolerance: Tolerance, all: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            for name in a.keys().chain(b.keys().filter(|name| !a.contains_key(*name))) {
                let at = format!("{at}/{name}");
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) if RESIDUES.contains(&name.as_str()) => values(&at, a, b, NOISE, all),
                    (Some(a), Some(b)) => values(&at, a, b, tolerance, all),
                    (Some(_), None) => all.push(format!("{at} is gone")),
                    _ => all.push(format!("{at} is new")),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            if a.len() != b.len() {
                all.push(format!("{at}: {} entries became {}", a.len(), b.len()));
                let only = |these: &[Value], others: &[Value], what: &str| -> Vec<String> {
                    let alone = these.iter().filter(|value| !others.contains(value));
                    alone.map(|value| format!("{at}: {} is {what}", brief(value))).collect()
                };
                all.extend(only(a, b, "gone"));
                return all.extend(only(b, a, "new"));
            }
            a.iter().zip(b).enumerate().for_each(|(i, (a, b))| values(&format!("{at}[{i}]"), a, b, tolerance, all));
        }
        (Value::Number(x), Value::Number(y)) if x.is_f64() && y.is_f64() => {
            if !tolerance.holds(x.as_f64().unwrap(), y.as_f64().unwrap()) {
                all.push(format!("{at}: {x} became {y}"));
            }
        }
        (Value::String(x), Value::String(y)) if x == y || !tolerance.exact() && same_text(x, y, tolerance) => {}
        (a, b) if a == b => {}
        (a, b) => all.push(format!("{at}: {} became {}", brief(a), brief(b))),
    }
}

fn brief(value: &Value) -> String {
    value.to_string().chars().take(200).collect()
}

/// A part of a line: a word, or a number with a fraction and what one unit of its last digit is worth.
#[derive(Debug, PartialEq)]
enum Part<'a> {
    Word(&'a str),
    Number(f64, f64),
}

/// Whether two lines have the same words and whole numbers, and near numbers with a fraction. Blanks between columns do not count.
fn same_text(a: &str, b: &str, tolerance: Tolerance) -> bool {
    let (a, b) = (parts(a), parts(b));
    let residue = |i: usize| i > 0 && matches!(a[i - 1], Part::Word(word) if RESIDUES.contains(&word));
    let same = |i: usize| match (&a[i], &b[i]) {
        (Part::Number(x, unit), Part::Number(y, other)) => {
            let percents = matches!(a.get(i + 1), Some(Part::Word(word)) if word.starts_with('%'));
            let tolerance = match residue(i) {
                true => NOISE,
                false if percents => Tolerance { absolute: 100.0 * tolerance.absolute, ..tolerance },
                false => tolerance,
            };
            // What is printed is rounded: neighbours may be one unit apart.
            tolerance.holds(*x, *y) || (x - y).abs() <= 1.01 * unit.max(*other)
        }
        (a, b) => a == b,
    };
    a.len() == b.len() && (0..a.len()).all(same)
}

/// Words and numbers of a line. Digits within a word, such as those of `mlp-500` or of a hash, belong to the word.
fn parts(line: &str) -> Vec<Part<'_>> {
    let mut all = Vec::new();
    for mut word in line.split_whitespace() {
        while !word.is_empty() {
            let end = number_at(word);
            if let Some(number) = (end > 0).then(|| fraction(&word[..end])).flatten() {
                all.push(number);
                word = &word[end..];
                continue;
            }
            // The next number begins after a sign that is neither letter nor digit, nor part of a number.
            let joins = |c: char| c.is_alphanumeric() || "._".contains(c);
            let next = word
                .char_indices()
                .zip(word.chars().skip(1))
                .find(|((_, c), next)| !joins(*c) && (next.is_ascii_digit() || "+-".contains(*next)));
            let cut = next.map_or(word.len(), |((i, c), _)| i + c.len_utf8());
            all.push(Part::Word(&word[..cut]));
            word = &word[cut..];
        }
    }
    all
}

/// Where the number ends with which a word begins; 0 if it begins with none, or if letters follow.
fn number_at(word: &str) -> usize {
    let digits = |from: usize| word[from..].bytes().take_while(u8::is_ascii_digit).count();
    let sign = usize::from(word.starts_with(['+', '-']));
    let whole = digits(sign);
    let mut end = sign + whole;
    if whole == 0 {
        return 0;
    }
    if word[end..].starts_with('.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if word[end..].starts_with('e') {
        let sign = usize::from(word[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        end += if (1..=3).contains(&exponent) { 1 + sign + exponent } else { 0 };
    }
    if word[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_') { 0 } else { end }
}

/// A number with a fraction or an exponent, and the worth of its last digit.
fn fraction(text: &str) -> Option<Part<'static>> {
    let mantissa = text.split('e').next()?;
    let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let exponent: i32 = text.split_once('e').map_or(Some(0), |(_, e)| e.parse().ok())?;
    if decimals == 0 && !text.contains('e') {
        return None;
    }
    Some(Part::Number(text.parse().ok()?, 10f64.powi(exponent - decimals as i32)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TOLERANCE: Tolerance = Tolerance { relative: 1e-3, absolute: 1e-9 };

    #[test]
    fn what_differs_is_named() {
        let a = json!({ "x": 1.0, "list": [1, 2], "name": "a", "gone": 0, "y": 1.0, "short": [1, 2] });
        let b = json!({ "x": 1.0005, "list": [1, 3], "name": "b", "more": 0, "y": 1.01, "short": [1] });
        let mut found = differences(&a, &b, TOLERANCE);
        found.sort();
        let told = [
            "/gone is gone",
            "/list[1]: 2 became 3",
            "/more is new",
            "/name: \"a\" became \"b\"",
            "/short: 2 entries became 1",
            "/short: 2 is gone",
            "/y: 1.0 became 1.01",
        ];
        assert_eq!(found, told);
        assert!(differences(&a, &a, EXACT).is_empty());
    }

    #[test]
    fn lines_agree_in_words_and_counts_and_nearly_in_numbers() {
        let same = |a, b| same_text(a, b, TOLERANCE);
        assert!(same("A = 0.10741 ± 0.0581 nats [1.20, -3.1e-4]", "A =  0.10742 ± 0.0582 nats [1.21, -3.2e-4]"));
        assert!(!same("A = 0.10741 nats", "A = 0.10841 nats"), "a number moved");
        let percents = |a, b| same_text(a, b, TRAINED);
        assert!(percents("right 7.27 % of", "right 8.93 % of") && !percents("right 7.27 nats", "right 8.93 nats"));
        assert!(same("p within 9.7e-6", "p within 3.1e-5") && !same("p within 9.7e-6", "p within 3.1e-3"));
        assert!(!same("over 24 images", "over 25 images"), "a count moved");
        assert!(!same("0.5 nats", "0.5 bits"), "a word moved");
        assert!(!same("x = -0.500", "x = 0.500"), "a sign moved");
        assert!(!same("0.50 0.50", "0.50"), "a column is gone");
        assert!(!same("v0.1.0-a", "v0.1.1-a"), "a name is no number");
        assert!(!same("10.5a", "10.6a"), "a hash is no number");
        assert!(same("(0.2501,0.75)", "(0.2502,0.75)") && !same("(0.25,0.75)", "(0.25;0.75)"));
    }
}

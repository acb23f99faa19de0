//! Numbers as people write them.

/// The largest count that a number in 64 bits holds exactly.
const LARGEST: f64 = 9_007_199_254_740_992.0;

/// A count: `10000`, `10,000`, `10_000` or `1e4`.
///
/// # Errors
/// Says what is wrong with it.
pub fn count(text: &str) -> Result<usize, String> {
    let plain = ungrouped(text.trim());
    if let Ok(count) = plain.parse() {
        return Ok(count);
    }
    let wanted = "expected a whole number of 0 or more, such as 10000, 10,000 or 1e4";
    match plain.parse::<f64>() {
        Ok(value) if value < 0.0 => Err(format!("{text} is negative: {wanted}")),
        Ok(value) if value.fract() == 0.0 && value <= LARGEST => Ok(value as usize),
        Ok(value) if value.is_finite() && value.fract() != 0.0 => Err(format!("{text} is no whole number: {wanted}")),
        Ok(_) => Err(format!("{text} is more than can be counted: {wanted}")),
        Err(_) => Err(wanted.into()),
    }
}

/// A real number.
///
/// # Errors
/// Says what is wrong with it; of a decimal comma, how it is written.
pub fn number(text: &str) -> Result<f64, String> {
    if let Ok(value) = text.trim().parse() {
        return Ok(value);
    }
    let point = text.replacen(',', ".", 1);
    match point.parse::<f64>() {
        Ok(_) => Err(format!("decimals are written with a point, not a comma: {point}")),
        Err(_) => Err("this is no number".into()),
    }
}

/// A number without the commas or underscores between its groups of three digits; as it is where
/// they stand elsewhere.
fn ungrouped(text: &str) -> String {
    for sign in [',', '_'] {
        let mut groups = text.split(sign);
        let first = groups.next().unwrap_or_default();
        let digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
        let rest: Vec<&str> = groups.collect();
        let grouped = !rest.is_empty() && rest.iter().all(|group| group.len() == 3 && digits(group));
        if grouped && (1..=3).contains(&first.len()) && digits(first) {
            return first.to_owned() + &rest.concat();
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::Cli;
    use super::*;

    #[test]
    fn counts_are_read_as_people_write_them() {
        for (text, value) in
            [("64", 64), ("10,000", 10_000), ("1_000_000", 1_000_000), ("1e4", 10_000), ("2.5e3", 2500)]
        {
            assert_eq!(count(text), Ok(value), "{text}");
        }
        for (text, why) in [
            ("-5", "negative"),
            ("0.5", "no whole number"),
            ("1e300", "more than"),
            ("1,0", "whole number of 0 or more"),
            ("1,2,3", "whole number of 0 or more"),
            ("inf", "more than"),
            ("many", "whole number of 0 or more"),
        ] {
            assert!(count(text).is_err_and(|said| said.contains(why)), "{text}: {:?}", count(text));
        }
        // Every count reads what it is written as.
        for n in [0, 1, 999, 1000, 123_456_789, usize::MAX] {
            assert_eq!(count(&n.to_string()), Ok(n));
        }
    }

    #[test]
    fn options_that_count_take_counts_as_people_write_them() {
        for line in [
            "posterior mnist x.npz --typicality 1e3",
            "posterior mnist x.npz --out job --class-batch 1e3 --image-batch 10,000",
            "oracle validate mnist --data d --two-sample-images 2,000 --two-sample-epochs 1e1 --feature-epochs 1e1",
            "slurm run --tasks 1e1",
            "bench sampling --images 1e1",
        ] {
            let read = Cli::try_parse_from(["bayescope"].into_iter().chain(line.split(' ')));
            assert!(read.is_ok(), "{line}: {:?}", read.err());
        }
    }

    #[test]
    fn a_decimal_comma_is_answered_with_the_point() {
        assert_eq!(number("-1.5e-3"), Ok(-0.0015));
        assert!(number("1,2").is_err_and(|said| said.ends_with("1.2")));
        assert!(number("warm").is_err());
    }
}

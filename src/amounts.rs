//! Times and sizes as people read them, in the window and on the command line alike.

/// A time span in the one or two units that matter: `0.8 s`, `45 s`, `3 min 20 s`, `1 h 04 min`, `5.0 days`.
pub fn duration(secs: f64) -> String {
    let secs = secs.max(0.0);
    let whole = secs.round() as u64;
    match whole {
        _ if secs < 9.95 => format!("{secs:.1} s"),
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        3600..172_800 => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{:.1} days", secs / 86_400.0),
    }
}

/// A size in megabytes (10⁶ bytes), as download pages give it.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_change_their_units_where_they_are_rounded_to_the_next() {
        let told = [-1.0, 0.84, 9.96, 59.4, 59.5, 200.0, 3599.6, 3840.0, 172_799.0, 432_000.0].map(duration);
        let expected = [
            "0.0 s",
            "0.8 s",
            "10 s",
            "59 s",
            "1 min 00 s",
            "3 min 20 s",
            "1 h 00 min",
            "1 h 04 min",
            "47 h 59 min",
            "5.0 days",
        ];
        assert_eq!(told, expected);
    }
}

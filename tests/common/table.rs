//! Differences collected, printed as a table, and judged at the end, so that a failure shows all of them.

/// How far a number may be from the reference.
#[derive(Clone, Copy)]
pub enum Tolerance {
    /// |a − b|.
    Absolute(f64),
    /// |a − b| / max(|b|, 1e-3): the reference prints 12 digits.
    Relative(f64),
}

/// The differences of one flow.
pub struct Table {
    title: String,
    failures: Vec<String>,
}

impl Table {
    pub fn new(title: String) -> Self {
        Self { title, failures: Vec::new() }
    }

    pub fn compare(&mut self, what: &str, ours: &[f64], golden: &[f64], tolerance: Tolerance) {
        assert_eq!(ours.len(), golden.len(), "{what}: count");
        let worst = |distance: fn(f64, f64) -> f64| {
            let distances = ours.iter().zip(golden).map(|(&a, &b)| distance(a, b));
            distances.fold(0.0, super::nan_is_infinite)
        };
        let absolute = worst(|a, b| (a - b).abs());
        let relative = worst(|a, b| (a - b).abs() / b.abs().max(1e-3));
        let (found, limit) = match tolerance {
            Tolerance::Absolute(limit) => (absolute, limit),
            Tolerance::Relative(limit) => (relative, limit),
        };
        let title = &self.title;
        let line = format!("{title:<34} {what:<24} abs {absolute:9.2e}  rel {relative:9.2e}  allowed {limit:.0e}");
        println!("{line}");
        if found > limit {
            self.failures.push(line);
        }
    }

    /// Panics with every difference that was too large.
    pub fn finish(self) {
        assert!(self.failures.is_empty(), "too far from the reference:\n{}", self.failures.join("\n"));
    }
}

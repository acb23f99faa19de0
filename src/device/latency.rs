//! How long another machine takes to answer.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// What became of a small tensor on its way there and back.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It came back after so long.
    Came(Duration),
    /// It is still on its way.
    Open,
    /// It will not come back: the connection has ended.
    Gone(String),
}

/// Round trips that are remembered.
const KEPT: usize = 30;

/// The recent small round trips of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Latency(VecDeque<Duration>);

impl Latency {
    /// One more; the oldest is forgotten.
    pub fn add(&mut self, trip: Duration) {
        self.0.truncate(KEPT - 1);
        self.0.push_front(trip);
    }

    /// Median and longest, ms; `None` before the first.
    pub fn median_and_worst_ms(&self) -> Option<[f64; 2]> {
        let mut ms: Vec<f64> = self.0.iter().map(|trip| 1e3 * trip.as_secs_f64()).collect();
        ms.sort_by(f64::total_cmp);
        let middle = ms.len() / 2;
        let median =
            if ms.len() % 2 == 1 { *ms.get(middle)? } else { 0.5 * (ms.get(middle.checked_sub(1)?)? + ms[middle]) };
        Some([median, *ms.last()?])
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = |ms: f64| match ms {
            ms if ms < 10.0 => format!("{ms:.1}"),
            ms => format!("{ms:.0}"),
        };
        match self.median_and_worst_ms() {
            None => write!(f, "not measured yet"),
            Some([median, worst]) => {
                write!(f, "median {} ms, worst {} ms of {}", digits(median), digits(worst), self.0.len())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_that_of_the_recent_trips() {
        let mut latency = Latency::default();
        assert_eq!((latency.median_and_worst_ms(), latency.to_string().as_str()), (None, "not measured yet"));
        for ms in [4, 1, 3, 40] {
            latency.add(Duration::from_millis(ms));
        }
        assert_eq!(latency.median_and_worst_ms(), Some([3.5, 40.0]));
        assert_eq!(latency.to_string(), "median 3.5 ms, worst 40 ms of 4");
        for _ in 0..KEPT {
            latency.add(Duration::from_millis(2));
        }
        assert_eq!((latency.0.len(), latency.median_and_worst_ms()), (KEPT, Some([2.0, 2.0])));
    }
}

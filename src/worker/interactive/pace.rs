//! How many key pictures make a piece: found from what pieces have taken, their own times alone.
//!
//! A pass takes t(n) = a + b n for n pictures. Where a is large (hundreds of steps one after the other, on
//! cores that others want, too), smaller pieces are hardly quicker and each picture in them is dearer: a is at
//! most half of a piece.

use std::time::Duration;

/// A piece should take about this long, seconds.
const PIECE: f64 = 0.08;
/// Pictures in the first piece at most, before their cost is known, and in any piece.
const FIRST: usize = 16;
const LARGEST: usize = 128;
/// Where one picture of a large piece takes longer, seconds, key pictures would be late whenever they are wanted.
const SLOWEST: f64 = 0.03;
/// Pieces in succession that must say so: one may have been held up.
const SURE: usize = 2;
/// Sizes are told apart where one is so many times the other.
const APART: f64 = 1.5;

/// a and b, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cost {
    pass: f64,
    picture: f64,
}

/// What pieces have taken, and the size of the next.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// Of the next piece; 0 before the first.
    size: usize,
    /// Pictures and seconds of the last piece.
    last: Option<(f64, f64)>,
    /// Unknown until pieces of two sizes were drawn.
    cost: Option<Cost>,
    /// The last pieces that were slow.
    slow: usize,
}

impl Pace {
    /// Pictures in the next piece; in the first no more than `first`.
    pub fn size(&self, first: usize) -> usize {
        if self.size == 0 { first.clamp(1, FIRST) } else { self.size }
    }

    /// Returns whether key pictures would come too late: what one of a large piece takes.
    pub fn is_too_slow(&self) -> Option<Duration> {
        let each = self.each().filter(|_| self.slow >= SURE)?;
        Some(Duration::from_secs_f64(each))
    }

    /// A piece of so many pictures took so long.
    pub fn took(&mut self, pictures: usize, time: Duration) {
        let (n, t) = (pictures.max(1) as f64, time.as_secs_f64());
        self.cost = match (self.last.replace((n, t)), self.cost) {
            (Some((m, s)), _) if m.max(n) >= APART * m.min(n) => {
                let pass = ((s * n - t * m) / (n - m)).clamp(0.0, s.min(t));
                Some(Cost { pass, picture: (t - pass) / n })
            }
            // Nothing new of what a pass takes: the pictures have become dearer, or cheaper.
            (_, Some(Cost { pass, .. })) => {
                let pass = pass.min(t);
                Some(Cost { pass, picture: (t - pass) / n })
            }
            (_, None) => None,
        };
        let slow = self.each().is_some_and(|each| each > SLOWEST);
        self.slow = if slow { self.slow + 1 } else { 0 };
        self.size = match self.cost {
            // Twice as many tell what a pass takes.
            None => 2 * pictures.max(1),
            Some(Cost { pass, picture }) => {
                let fits = (PIECE - pass).max(pass) / picture.max(1e-9);
                // One piece that was held up must not change much.
                (fits as usize).clamp((self.size / 2).max(1), 2 * self.size.max(1))
            }
        };
        self.size = self.size.min(LARGEST);
    }

    /// What one picture of a large piece takes, seconds.
    fn each(&self) -> Option<f64> {
        self.cost.map(|Cost { pass, picture }| pass / LARGEST as f64 + picture)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(secs: f64) -> Duration {
        Duration::from_secs_f64(secs)
    }

    /// Draws so many pictures where a piece of n takes a + b n seconds. Returns the time and the last size.
    fn draw(pace: &mut Pace, pictures: usize, [a, b]: [f64; 2]) -> (f64, usize) {
        let (mut left, mut spent) = (pictures, 0.0);
        while left > 0 {
            let piece = pace.size(FIRST).min(left);
            let took = a + b * piece as f64;
            pace.took(piece, time(took));
            (left, spent) = (left - piece, spent + took);
        }
        (spent, pace.size(FIRST))
    }

    #[test]
    fn what_a_pass_takes_is_never_paid_for_a_few_pictures() {
        for a in [0.0, 0.01, 0.05, 0.1, 0.25, 1.0] {
            for b in [0.0005, 0.002, 0.01] {
                let mut pace = Pace::default();
                draw(&mut pace, 400, [a, b]);
                let (spent, size) = draw(&mut pace, 500, [a, b]);
                let best = 500.0 / LARGEST as f64 * a + 500.0 * b;
                assert!(spent <= 2.3 * best + a, "a = {a}, b = {b}: {spent} s in pieces of {size}, {best} s at best");
                let takes = a + b * size as f64;
                assert!(takes <= 1.3 * PIECE.max(2.0 * a), "a = {a}, b = {b}: a piece of {size} takes {takes} s");
                assert_eq!(pace.is_too_slow(), None, "a = {a}, b = {b}");
            }
        }
    }

    #[test]
    fn a_machine_that_becomes_busy_makes_no_pieces_of_one_picture() {
        let mut pace = Pace::default();
        draw(&mut pace, 500, [0.02, 0.001]);
        let (_, size) = draw(&mut pace, 500, [0.4, 0.008]);
        assert!(size >= 32, "{size}");
        assert_eq!(pace.is_too_slow(), None);
    }

    #[test]
    fn only_pictures_that_are_dear_themselves_are_too_slow_and_one_hold_up_is_no_proof() {
        let mut dear = Pace::default();
        let (spent, _) = draw(&mut dear, 8, [0.0, 0.5]);
        assert!(spent <= 4.1);
        draw(&mut dear, 40, [0.0, 0.5]);
        let each = dear.is_too_slow().expect("half a second each");
        assert!((each.as_secs_f64() - 0.5).abs() < 1e-6);
        let mut held_up = Pace::default();
        held_up.took(16, time(0.05));
        held_up.took(32, time(3.0));
        assert_eq!(held_up.is_too_slow(), None);
        let (_, size) = draw(&mut held_up, 300, [0.02, 0.001]);
        assert!(held_up.is_too_slow().is_none() && size >= 32, "{size}");
        // The first piece of a cold engine.
        let mut cold = Pace::default();
        cold.took(16, time(2.0));
        draw(&mut cold, 300, [0.02, 0.001]);
        assert!(cold.is_too_slow().is_none() && cold.size(FIRST) >= 32);
    }

    #[test]
    fn one_picture_alone_says_nothing_of_others() {
        let mut pace = Pace::default();
        (0..5).for_each(|_| pace.took(1, time(0.3)));
        assert_eq!((pace.is_too_slow(), pace.size(1)), (None, 2));
    }
}

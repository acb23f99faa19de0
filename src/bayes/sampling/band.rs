//! A curve of Bayes errors read between its points: E at a τ, and τ at an E, both with a band.
//!
//! Linear in Φ⁻¹(E) over 1/τ, which is exact for two Gaussian classes. For other worlds the band also
//! holds an estimate of what the line misses ([`BEND`]), beside the error of the draws.

use super::target::RANGE;
use crate::bayes::estimate::Figure;
use crate::bayes::normal::{cdf, quantile};
use crate::stats::Z95;

/// How many of the second differences nearby a line is taken to miss: 1 if the curvature were the
/// same everywhere, 2 since it is not. Nothing bounds the curvature of an arbitrary map.
const BEND: f64 = 2.0;
/// Places looked at between two points, where τ is asked for.
const PLACES: usize = 24;
/// Halvings that find an end between two places.
const HALVINGS: usize = 40;

/// Points of a curve.
pub(super) struct Band {
    /// τ, ascending, and the Bayes error there.
    points: Vec<(f64, Figure)>,
}

/// Between two neighbouring points.
struct Gap {
    /// 1/τ and the Bayes error at the lower and the upper end of τ.
    ends: [(f64, Figure); 2],
    /// Half of the largest second derivative that the line is taken to miss.
    bend: f64,
}

impl Band {
    /// Of points in ascending order of τ.
    pub fn new(points: impl IntoIterator<Item = (f64, Figure)>) -> Self {
        Self { points: points.into_iter().collect() }
    }

    /// The Bayes error at τ with its band; none outside of the curve, and none between points before
    /// there are three.
    pub fn error_at(&self, tau: f64) -> Option<Figure> {
        let place = self.points.partition_point(|(at, _)| *at < tau);
        let (at, figure) = self.points.get(place)?;
        if *at == tau {
            return Some(*figure);
        }
        Some(self.gap(place)?.at(tau))
    }

    /// The τ at which the Bayes error is `error`, with an interval that holds every τ whose band does:
    /// where that of an end of the curve does, it goes on to the end of all that is searched. None
    /// where the curve does not come to this error.
    pub fn tau_of(&self, error: f64) -> Option<Figure> {
        let mut places = Vec::new();
        for place in 1..self.points.len() {
            let gap = self.gap(place)?;
            let [from, to] = gap.ends.map(|(x, _)| x);
            let at = |step: usize| (from + (to - from) * step as f64 / PLACES as f64).recip();
            places.extend((0..=PLACES).map(|step| (at(step), gap.at(at(step)))));
        }
        let crossing = places.windows(2).position(|two| (two[0].1.value <= error) != (two[1].1.value <= error))?;
        // Between a place where something holds and one where it does not: where it has just ceased to.
        let end = |mut yes: f64, mut no: f64, something: &dyn Fn(&Figure) -> bool| {
            for _ in 0..HALVINGS {
                let middle = 0.5 * (yes + no);
                match self.error_at(middle).is_some_and(|figure| something(&figure)) {
                    true => yes = middle,
                    false => no = middle,
                }
            }
            no
        };
        let below = places[crossing].1.value <= error;
        let value = end(places[crossing].0, places[crossing + 1].0, &|figure| (figure.value <= error) == below);
        // There the band holds the error, however narrow it is.
        places.insert(crossing + 1, (value, Figure { value: error, std_error: 0.0, interval: (error, error) }));
        let holds = |figure: &Figure| figure.interval.0 <= error && error <= figure.interval.1;
        let first = places.iter().position(|(_, figure)| holds(figure))?;
        let last = places.iter().rposition(|(_, figure)| holds(figure))?;
        let low = if first == 0 { RANGE.0 } else { end(places[first].0, places[first - 1].0, &holds) };
        let high = match places.get(last + 1) {
            Some((beyond, _)) => end(places[last].0, *beyond, &holds),
            None => RANGE.1,
        };
        let (low, high) = (low.min(value), high.max(value));
        Some(Figure { value, std_error: 0.5 * (high - low) / Z95, interval: (low, high) })
    }

    /// The gap below point `place`; none of fewer than three points.
    fn gap(&self, place: usize) -> Option<Gap> {
        let end = |i: usize| self.points.get(i).map(|(tau, figure)| (tau.recip(), *figure));
        let bend = BEND * self.second_difference(place)?;
        Some(Gap { ends: [end(place.checked_sub(1)?)?, end(place)?], bend })
    }

    /// The largest second divided difference of Φ⁻¹(E) over 1/τ near the gap below point `place`, in
    /// absolute value; infinite where one has no value, none of fewer than three points.
    fn second_difference(&self, place: usize) -> Option<f64> {
        let near = &self.points[place.saturating_sub(3)..(place + 3).min(self.points.len())];
        let at = |i: usize| (near[i].0.recip(), quantile(near[i].1.value));
        let slope = |i: usize| (at(i + 1).1 - at(i).1) / (at(i + 1).0 - at(i).0);
        let second = (0..near.len().checked_sub(2)?).map(|i| (slope(i + 1) - slope(i)) / (at(i + 2).0 - at(i).0));
        let second = second.map(|value| if value.is_nan() { f64::INFINITY } else { value.abs() });
        second.reduce(f64::max)
    }
}

impl Gap {
    /// The Bayes error at a τ between the ends, or at one of them. An end of an interval that was cut to 0 or 1 has no
    /// place on the axis: the band then goes that far between the two points.
    fn at(&self, tau: f64) -> Figure {
        let [(from, below), (to, above)] = &self.ends;
        let at = tau.recip();
        let share = (at - from) / (to - from);
        let on_line = |pick: fn(&Figure) -> f64| {
            let (from, to) = (quantile(pick(below)), quantile(pick(above)));
            from + share * (to - from)
        };
        let bend = self.bend * ((at - from) * (at - to)).abs();
        let value = on_line(|f| f.value);
        let low = || match below.interval.0.min(above.interval.0) <= 0.0 {
            true => 0.0,
            false => cdf(on_line(|f| f.interval.0) - bend),
        };
        let high = || match below.interval.1.max(above.interval.1) >= 1.0 {
            true => 1.0,
            false => cdf(on_line(|f| f.interval.1) + bend),
        };
        let (value, (low, high)) = match (value + bend).is_finite() {
            true => (cdf(value), (low(), high())),
            // An error of 0 has no place on that axis: all between the two points.
            false => {
                let all = (below.interval.0.min(above.interval.0), below.interval.1.max(above.interval.1));
                (below.value + share * (above.value - below.value), all)
            }
        };
        Figure { value, std_error: 0.5 * (high - low) / Z95, interval: (low, high) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of E = Φ(−d/τ) averaged over pairs of classes at these distances, with intervals of so
    /// many times the value on either side.
    fn band(distances: &[f64], taus: &[f64], half: f64) -> (Band, impl Fn(f64) -> f64 + use<>) {
        let distances = distances.to_vec();
        let truth = move |tau: f64| distances.iter().map(|d| cdf(-d / tau)).sum::<f64>() / distances.len() as f64;
        let figure = |value: f64| Figure::new(value, half * value, 0.5);
        let points: Vec<(f64, Figure)> = taus.iter().map(|&tau| (tau, figure(truth(tau)))).collect();
        (Band::new(points), truth)
    }

    const TAUS: [f64; 9] = [0.3, 0.4, 0.5, 0.7, 0.85, 1.0, 1.5, 2.0, 3.0];

    #[test]
    fn a_tau_is_read_where_its_error_is_and_its_interval_is_that_of_the_band() {
        for distances in [&[1.5][..], &[0.5, 1.0, 2.5], &[1.0, 1.1, 1.9]] {
            for half in [0.02, 0.05] {
                let (band, truth) = band(distances, &TAUS, half);
                for tau in [0.45, 0.7, 0.93, 1.0, 1.6] {
                    let found = band.tau_of(truth(tau)).unwrap();
                    let (low, high) = found.interval;
                    assert!(low < tau && tau < high && low <= found.value && found.value <= high, "{tau}: {found:?}");
                    // Just outside of the interval the band does not hold the error, just inside it does.
                    for (end, inwards) in [(low, 1.0), (high, -1.0)] {
                        let holds = |at: f64| {
                            let (low, high) = band.error_at(at).unwrap().interval;
                            low <= truth(tau) && truth(tau) <= high
                        };
                        let (inside, outside) = (end * (1.0 + 1e-7 * inwards), end * (1.0 - 1e-7 * inwards));
                        assert!(holds(inside) && !holds(outside), "{tau}, {half}: {end}");
                    }
                }
            }
        }
        // Where two Gaussian classes are all there is, and nothing was left to chance.
        let (band, truth) = band(&[1.5], &TAUS, 0.0);
        let found = band.tau_of(truth(1.2)).unwrap();
        assert!((found.value / 1.2 - 1.0).abs() < 1e-6 && found.relative_half_width() < 1e-4, "{found:?}");
    }

    #[test]
    fn what_an_end_of_the_curve_does_not_exclude_stays_open_and_beyond_it_nothing_is_said() {
        let (band, truth) = band(&[1.5], &[0.6, 1.0, 1.5], 0.2);
        let low = band.tau_of(truth(0.61)).unwrap();
        assert_eq!(low.interval.0, RANGE.0);
        assert!(low.interval.1 < 1.0, "{low:?}");
        let high = band.tau_of(truth(1.45)).unwrap();
        assert_eq!(high.interval.1, RANGE.1);
        assert!(high.interval.0 > 1.0, "{high:?}");
        assert!(band.tau_of(truth(0.5)).is_none() && band.tau_of(truth(2.0)).is_none());
        // Two points do not tell how a curve bends.
        let two = Band::new(band.points[..2].to_vec());
        assert!(two.tau_of(truth(0.8)).is_none() && Band::new([]).tau_of(0.1).is_none());
    }

    #[test]
    fn where_draws_do_not_tell_the_error_from_zero_the_band_goes_down_to_it() {
        let (sharp, truth) = band(&[1.5], &TAUS, 0.02);
        // Hardly a draw is in doubt up to τ = 0.5: the half width there is larger than the value.
        let points = sharp.points.iter().map(|&(tau, figure)| match tau <= 0.5 {
            true => (tau, Figure::new(figure.value, 1.5 * figure.value, 0.5)),
            false => (tau, figure),
        });
        let band = Band::new(points);
        for tau in [0.35, 0.45, 0.55, 0.6] {
            let found = band.error_at(tau).unwrap();
            assert!(found.interval.0 == 0.0 && found.interval.1 > truth(tau) && found.std_error > 0.0, "{found:?}");
        }
        assert!(band.error_at(0.8).unwrap().interval.0 > 0.9 * truth(0.8));
        // The same draws looked at by a search: at none of these τ do they refuse the error.
        let (target, found) = (truth(0.45), band.tau_of(truth(0.45)).unwrap());
        let (low, high) = found.interval;
        assert!((found.value / 0.45 - 1.0).abs() < 1e-6, "{found:?}");
        assert!(band.error_at(0.43).unwrap().interval.1 > target && low < 0.43, "{found:?}");
        assert!(band.error_at(0.69).unwrap().interval.0 < target && high > 0.69, "{found:?}");
        // Beyond the gap whose lower end is cut, the error is refused.
        assert!(low > 0.4 && high < 0.71, "{found:?}");
    }
}

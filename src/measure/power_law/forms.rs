//! Both forms of a law together: bands and forecasts that hold the doubt whether there is a floor.
//!
//! A replicate of one form takes that form for true. Beyond the N that were run the two part, and the
//! band of the form that was chosen leaves out that the other one fits nearly as well: over six
//! sizes of three runs that scatter by 10 %, a floor of half the last value is seen in one case of
//! five, and else the band of the pure law covered the truth in 59 % at twice the largest N and in
//! 2 % at ten times. So curves are drawn from both forms, as is done by weights of models (Buckland,
//! Burnham & Augustin 1997; Burnham & Anderson 2002, chapter 4): of curves with a floor there are
//!
//! * half, where the F test does not exclude the pure law (p ≥ 0.05);
//! * otherwise Akaike's weight of the floor, 1/(1 + e^(ΔAICc/2)), at least half; all, where AICc says
//!   nothing.
//!
//! Akaike's weights alone leave the floor 16 % where it takes off no squares: the truth is then below
//! the 97.5 % quantile only if it is below the floor's own 84 %. In simulations (60 grids each: 6 × 3
//! runs of 10 %, 6 × 1 of 5 %, 5 × 1 of 3 %, 8 × 3 of 10 %; α = 0.5 and floors of 0, 0.005, 0.01, 0.02 and
//! 0.05) the bands cover the truth in 92 to 100 % at 1, 2 and 10 times the largest N, with Akaike's
//! weights alone in 87 to 100 %. Where there is no floor the band at ten times the largest N
//! of 6 × 3 runs then spans a factor of 2.7 in place of 1.5.

use super::scatter::Replicate;
use super::verdict::Comparison;
use crate::measure::interval::Interval;

/// Share of curves with a floor where nothing speaks against either form.
const EVEN: f64 = 0.5;

impl Comparison {
    /// Share of the curves behind bands and forecasts that have a floor: see the top of the file.
    pub fn floor_share(&self) -> f64 {
        match self.floor {
            None => 0.0,
            Some(_) if !self.pure_is_excluded() => EVEN,
            Some(_) => self.akaike_weight().map_or(1.0, |weight| weight.max(EVEN)),
        }
    }

    /// Akaike's weight of the floor; `None` without both AICc.
    fn akaike_weight(&self) -> Option<f64> {
        let (pure, floor) = self.pure_aicc.zip(self.floor_aicc)?;
        Some(1.0 / (1.0 + ((floor - pure) / 2.0).exp()))
    }

    /// Curves of both forms, each at its own place: the images of a replicate are drawn by its number.
    pub(super) fn drawn(&self) -> Vec<Replicate> {
        let pure = self.pure.drawn();
        let Some(floor) = self.floor.as_ref().map(|law| law.drawn()) else { return pure.into_owned() };
        let share = self.floor_share();
        let before = |i: usize| (i as f64 * share).round();
        let one = |(i, (pure, floor))| if before(i + 1) > before(i) { floor } else { pure };
        pure.iter().copied().zip(floor.iter().copied()).enumerate().map(one).collect()
    }

    /// The 95 % interval of the curve at `n` training images, over both forms. Single runs scatter
    /// around it.
    pub fn band(&self, n: f64) -> Interval {
        self.law().band_of(&self.drawn(), n)
    }

    /// The law to use at each of these numbers of training images: N, value, and the ends of
    /// [`Self::band`]. Replicates are drawn once for all.
    pub fn course(&self, sizes: impl IntoIterator<Item = f64>) -> Vec<[f64; 4]> {
        let (law, drawn) = (self.law(), self.drawn());
        let at = |n: f64| {
            let band = law.band_of(&drawn, n);
            [n, law.value(n), band.low, band.high]
        };
        sizes.into_iter().map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Noise, SILENT, synthetic};
    use super::super::{Forecast, Variant, compare, more_data};
    use super::*;
    use crate::units::Seed;

    const SIX: [f64; 6] = [100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0];

    fn six(floor: f64, run: f64, draw: u64) -> Comparison {
        compare(&synthetic((1.0, 0.5, floor), &SIX, 3, Noise { run, ..SILENT }, draw), None, Seed(draw)).unwrap()
    }

    #[test]
    fn bands_cover_the_truth_whether_there_is_a_floor_or_not() {
        let trials = 40;
        for floor in [0.0, 0.02] {
            let (mut hits, mut alone, mut spans) = ([0; 3], [0; 3], Vec::new());
            for draw in 0..trials {
                let fits = six(floor, 0.1, draw);
                for (i, n) in [3200.0, 6400.0, 32_000.0].into_iter().enumerate() {
                    let (band, truth) = (fits.band(n), f64::powf(n, -0.5) + floor);
                    hits[i] += u64::from(band.contains(truth));
                    alone[i] += u64::from(fits.law().band(n).contains(truth));
                }
                let far = fits.band(32_000.0);
                spans.push(far.high / far.low);
            }
            spans.sort_unstable_by(f64::total_cmp);
            let span = spans[spans.len() / 2];
            println!("floor {floor}: {hits:?} of {trials}, of the chosen form alone {alone:?}; span {span:.2}");
            // Fewer than 32 of 40 have probability 0.1 % where 95 % are covered.
            assert!(hits.iter().all(|&hit| hit >= 32) && span < 4.0, "{floor}: {hits:?}, {span}");
            assert!(floor == 0.0 || alone[2] < 20, "what was wrong: {alone:?}");
        }
    }

    #[test]
    fn a_forecast_has_no_upper_end_where_curves_with_a_floor_never_come_there() {
        let hidden = (0..20).map(|draw| six(0.02, 0.1, draw)).find(|fits| fits.preferred == Variant::Pure).unwrap();
        let Forecast::Reachable { ends, sentence, .. } = more_data(&hidden, 0.01).unwrap() else {
            panic!("0.01 is below the floor: {:?}", more_data(&hidden, 0.01))
        };
        let (low, high) = ends.interval;
        assert!(low > 3200.0 && high.is_none() && sentence.contains("never come there"), "{sentence}");
    }

    #[test]
    fn shares_follow_what_speaks_for_the_forms() {
        let (seen, exact) = (six(0.02, 0.005, 0), six(0.0, 0.0, 0));
        assert!(seen.preferred == Variant::Floor && seen.floor_share() > 0.99);
        assert_eq!(seen.band(1e5), Comparison { pure_aicc: None, ..seen.clone() }.band(1e5));
        assert_eq!(exact.floor_share(), EVEN);
        // Two forms that agree have one band.
        let band = exact.band(32_000.0);
        assert!((band.high / band.low - 1.0).abs() < 1e-4, "{band:?}");
        let doubtful = Comparison { floor_p: Some(0.2), ..seen.clone() };
        let lifted = |fits: &Comparison| fits.drawn().iter().filter(|r| r.curve.floor > 0.0).count();
        assert_eq!((doubtful.floor_share(), lifted(&doubtful), lifted(&seen)), (EVEN, 500, 1000));
        let [[n, value, low, high]] = doubtful.course([6400.0])[..] else { panic!("one") };
        assert_eq!((value, Interval { low, high }), (seen.law().value(n), doubtful.band(n)));
        let alone = Comparison { floor: None, preferred: Variant::Pure, ..seen.clone() };
        assert_eq!((alone.floor_share(), alone.band(1e4)), (0.0, seen.pure.band(1e4)));
    }
}

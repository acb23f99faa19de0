//! Which of the two laws the points support, and what that means for the next training run.

use serde::{Deserialize, Serialize};

use super::points::{Design, plain};
use super::scatter::by_chance;
use super::{Point, PowerLaw, TestImages, Variant, fit_on};
use crate::error::Result;
use crate::measure::interval::{Estimate, Interval};
use crate::units::Seed;

/// The floor must lower AICc by this much: a likelihood ratio of e (Burnham & Anderson's rule).
const SUPPORT: f64 = 2.0;

/// Chance of keeping a floor that is none.
const SIGNIFICANT: f64 = 0.05;

/// Mean squared residuals below this are rounding.
const ROUNDING: f64 = 1e-20;

/// An asymptote above this share of the value at the largest N is the larger part of it.
const LARGER_PART: f64 = 0.5;

/// An asymptote from this share of the value at the largest N on is printed as all of it.
const WHOLE: f64 = 0.995;

/// What keeps a classifier from the Bayes posterior at the largest N that was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// More than half of the value at the largest N is the asymptote of the fitted curve. Larger N,
    /// or longer training, may come below it: nothing here says that they do not.
    FloorDominated,
    /// At least half of the value falls as a power of N: more data help. Without a fitted floor this
    /// is said only where the upper end of the floor's interval is below half of the value.
    EpistemicDominated,
    /// The points do not tell.
    NotIdentifiable,
}

/// Both laws, and the one to use. Bands and forecasts hold the choice between them: see `forms`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// a·N^(−α).
    pub pure: PowerLaw,
    /// a·N^(−α) + c; `None` below four different N.
    pub floor: Option<PowerLaw>,
    /// AICc of the first (Hurvich & Tsai 1989), the variance of log values a parameter; `None` below
    /// seven points.
    pub pure_aicc: Option<f64>,
    /// AICc of the second; `None` below nine points.
    pub floor_aicc: Option<f64>,
    /// Probability of an improvement like the floor's where there is none: F test of the squares it
    /// removes against [`PowerLaw::error_mean_square`].
    pub floor_p: Option<f64>,
    /// The law to use: the floor is kept if it lowers AICc by 2 or more *and* `floor_p` is below
    /// 0.05; the latter alone where there are too few points for AICc. AICc takes all runs for
    /// independent; the F test knows that runs at one N may share what the law misses there.
    pub preferred: Variant,
    /// The conclusion.
    pub verdict: Verdict,
    /// The conclusion in words.
    pub sentence: String,
}

impl Comparison {
    /// What this program concludes, which a file of an older one may say otherwise. Not of values that are all equal.
    #[cfg(test)]
    pub fn told_anew(&self) -> (Verdict, String) {
        conclude(self, false)
    }

    /// The law to use.
    pub fn law(&self) -> &PowerLaw {
        match (&self.floor, self.preferred) {
            (Some(floor), Variant::Floor) => floor,
            _ => &self.pure,
        }
    }

    /// Returns whether the F test excludes a power of N alone.
    pub(super) fn pure_is_excluded(&self) -> bool {
        self.floor_p.is_some_and(|p| p < SIGNIFICANT)
    }

    /// Whether AICc speaks for the floor; `None` where there are too few points for it.
    fn is_supported(&self) -> Option<bool> {
        self.pure_aicc.zip(self.floor_aicc).map(|(pure, floor)| floor <= pure - SUPPORT)
    }
}

/// Fits both laws, on what is known of the points' test images, and says which one the points
/// support. The choice itself is given these images.
///
/// # Errors
/// Those of [`fit_on`] without a floor.
pub fn compare(points: &[Point], images: Option<&TestImages>, seed: Seed) -> Result<Comparison> {
    let pure = fit_on(points, images, Variant::Pure, seed)?;
    let enough = pure.n_sizes > Variant::Floor.parameters();
    let floor = if enough { Some(fit_on(points, images, Variant::Floor, seed)?) } else { None };
    let (pure_aicc, floor_aicc) = (aicc(&pure), floor.as_ref().and_then(aicc));
    let floor_p = floor.as_ref().map(|floor| chance(&pure, floor));
    let mut comparison = Comparison {
        pure,
        floor,
        pure_aicc,
        floor_aicc,
        floor_p,
        preferred: Variant::Pure,
        verdict: Verdict::NotIdentifiable,
        sentence: String::new(),
    };
    if comparison.pure_is_excluded() && comparison.is_supported() != Some(false) {
        comparison.preferred = Variant::Floor;
    }
    let flat = Design::of(points, None)?.is_flat();
    (comparison.verdict, comparison.sentence) = conclude(&comparison, flat);
    Ok(comparison)
}

/// n ln(RSS/n) + 2k + 2k(k + 1)/(n − k − 1), k parameters with the variance; `None` where n − k − 1 <
/// k: there the last term, the correction, is larger than the penalty 2k that it corrects, and
/// AICc asks of a floor that the squares fall 150-fold (n = 6), whatever they are.
fn aicc(law: &PowerLaw) -> Option<f64> {
    let (n, k) = (law.n_points as f64, (law.variant.parameters() + 1) as f64);
    let mean_square = (law.residual_sum / n).max(ROUNDING);
    let left = n - k - 1.0;
    (left >= k).then(|| n * mean_square.ln() + 2.0 * k + 2.0 * k * (k + 1.0) / left)
}

/// The probability of `floor`'s improvement on `pure` by chance.
fn chance(pure: &PowerLaw, floor: &PowerLaw) -> f64 {
    let removed = (pure.residual_sum - floor.residual_sum).max(0.0);
    by_chance(removed / floor.error_mean_square.max(ROUNDING), 1.0, floor.error_freedom)
}

fn conclude(comparison: &Comparison, flat: bool) -> (Verdict, String) {
    let law = comparison.law();
    if flat {
        let largest = law.largest();
        let sentence = format!("All values are equal up to N = {largest}: floor and slow learning look alike.");
        return (Verdict::NotIdentifiable, sentence);
    }
    match (law.floor, comparison.preferred) {
        (Some(floor), Variant::Floor) => of_a_floor(law, floor),
        _ => of_a_power(comparison),
    }
}

/// Where the law to use has a floor.
fn of_a_floor(law: &PowerLaw, floor: Estimate) -> (Verdict, String) {
    let largest = law.largest();
    let share = floor.value / law.value(largest);
    let what = format!(
        "The fitted asymptote is {} (95 %: {} to {}), fitted over N = {} to {largest}: {:.0} % of the value at N = {largest}",
        plain(floor.value),
        plain(floor.interval.low),
        plain(floor.interval.high),
        law.smallest(),
        100.0 * share
    );
    if share > LARGER_PART {
        let rest = "up to there more data help little; what larger N or more steps bring, only a run there shows.";
        (Verdict::FloorDominated, format!("{what}; {rest}"))
    } else {
        (Verdict::EpistemicDominated, format!("{what}; the larger part still falls with more data."))
    }
}

/// Where the law to use is a power of N alone: what that says of an asymptote, if anything.
fn of_a_power(comparison: &Comparison) -> (Verdict, String) {
    let law = &comparison.pure;
    let (largest, Interval { low, high }) = (law.largest(), law.alpha.interval);
    let exponent = format!("the exponent is {:.3} (95 %: {low:.3} to {high:.3})", law.alpha.value);
    if low <= 0.0 {
        return (Verdict::NotIdentifiable, no_fall(law, &exponent));
    }
    let (supported, excluded) = (comparison.is_supported(), comparison.pure_is_excluded());
    if supported == Some(true) && !excluded {
        let sentence = format!(
            "A floor fits better than a power of N alone ({exponent}), but all runs at one N lie off the curve together too far to be sure of it: run more, and larger, N."
        );
        return (Verdict::NotIdentifiable, sentence);
    }
    if supported == Some(false) && excluded {
        let sentence = format!(
            "A floor fits better than a power of N alone ({exponent}) by an F test, but not by enough for so few runs (AICc): run more, and larger, N."
        );
        return (Verdict::NotIdentifiable, sentence);
    }
    let left = 100.0 * 2f64.powf(-law.alpha.value);
    let rate = format!("{exponent}, so twice the data leave {left:.0} % of it");
    let Some(most) = comparison.floor.as_ref().and_then(|law| law.floor).map(|floor| floor.interval.high) else {
        let sentence = format!(
            "The value falls as a power of N up to N = {largest}: {rate}. Whether it levels off, {} numbers of images are too few to test.",
            law.n_sizes
        );
        return (Verdict::NotIdentifiable, sentence);
    };
    let share = most / law.value(largest);
    let what = format!("{} (95 %), {:.0} % of the value there", plain(most), 100.0 * share);
    if share > LARGER_PART {
        // The upper end comes from curves that lie higher at the largest N than the fitted one: no
        // curve that falls levels off above its own value there.
        let asymptote = match share < WHOLE {
            true => format!("an asymptote of up to {what}, fits them as well."),
            false => format!("they do not exclude (95 %) that the value at N = {largest} is the asymptote already."),
        };
        let sentence = format!(
            "The value falls as a power of N up to N = {largest}: {rate}. Whether it levels off these runs cannot tell: {asymptote}"
        );
        return (Verdict::NotIdentifiable, sentence);
    }
    // Rounding is no asymptote.
    let none =
        if share >= 0.005 { format!(" An asymptote lies below {what}, if there is one.") } else { String::new() };
    let sentence = format!("The value falls as a power of N and shows no asymptote up to N = {largest}: {rate}.{none}");
    (Verdict::EpistemicDominated, sentence)
}

/// Of values that do not surely fall.
fn no_fall(law: &PowerLaw, exponent: &str) -> String {
    let (smallest, largest) = (law.smallest(), law.largest());
    let [first, last] = [smallest, largest].map(|n| plain(law.value(n)));
    if law.alpha.interval.high < 0.0 {
        return format!(
            "The fitted value rises from {first} at N = {smallest} to {last} at N = {largest}: {exponent}. It does not fall with more data."
        );
    }
    format!(
        "The fitted value goes from {first} at N = {smallest} to {last} at N = {largest}. These runs do not fix a law: {exponent}, \
         and a floor and slow learning cannot be told apart. Add numbers of images, or seeds."
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Noise, SILENT, SIZES, synthetic};
    use super::*;

    fn verdict(law: (f64, f64, f64), run: f64, draw: u64) -> Comparison {
        compare(&synthetic(law, &SIZES, 3, Noise { run, ..SILENT }, draw), None, Seed(draw)).unwrap()
    }

    #[test]
    fn exact_curves_are_told_apart() {
        let pure = verdict((1.0, 0.3, 0.0), 0.0, 0);
        assert_eq!((pure.preferred, pure.verdict), (Variant::Pure, Verdict::EpistemicDominated));
        assert!(pure.sentence.contains("81 %"), "{}", pure.sentence);
        let floor = verdict((1.0, 0.5, 0.02), 0.0, 0);
        assert_eq!((floor.preferred, floor.verdict), (Variant::Floor, Verdict::FloorDominated));
        assert!(floor.sentence.contains("81 %") && floor.law().floor.is_some(), "{}", floor.sentence);
        // The same floor under a slower law: most of the value still falls.
        assert_eq!(verdict((1.0, 0.2, 0.02), 0.0, 0).verdict, Verdict::EpistemicDominated);
    }

    #[test]
    fn an_asymptote_is_what_was_fitted_and_no_prophecy() {
        let sentence = verdict((1.0, 0.5, 0.02), 0.0, 0).sentence;
        assert!(sentence.contains("fitted asymptote") && sentence.contains("over N = 100 to 45000"), "{sentence}");
        assert!(!sentence.contains("cannot") && !sentence.contains("remove"), "{sentence}");
    }

    #[test]
    fn scattered_curves_are_told_apart_most_of_the_time() {
        let trials = 30;
        let share = |law, noise: Noise, wanted| {
            let right = |draw: &u64| {
                compare(&synthetic(law, &SIZES, 3, noise, *draw), None, Seed(*draw)).unwrap().verdict == wanted
            };
            (0..trials).filter(right).count() as f64 / trials as f64
        };
        let (runs, quiet) = (Noise { run: 0.1, ..SILENT }, Noise { run: 0.03, ..SILENT });
        let early = share((1.0, 0.8, 0.05), runs, Verdict::FloorDominated);
        let late = share((1.0, 0.5, 0.02), runs, Verdict::FloorDominated);
        let pure = share((1.0, 0.5, 0.0), quiet, Verdict::EpistemicDominated);
        // What an uneven course cannot tell is not told; a floor that is none is rarely asserted.
        let uneven = 1.0 - share((1.0, 0.3, 0.0), Noise { size: 0.15, ..runs }, Verdict::FloorDominated);
        let neither = share((0.1, 0.0, 0.0), runs, Verdict::NotIdentifiable);
        println!("right: floor {early:.2}, {late:.2}; power {pure:.2}, uneven {uneven:.2}; neither {neither:.2}");
        assert!(early > 0.85 && late > 0.9 && pure > 0.8 && uneven > 0.85 && neither > 0.8);
    }

    #[test]
    fn flat_and_rising_values_are_not_identifiable() {
        let flat = verdict((0.117, 0.0, 0.0), 0.0, 0);
        assert_eq!(flat.verdict, Verdict::NotIdentifiable);
        assert!(flat.sentence.contains("equal"));
        assert_eq!((flat.pure.r_squared, flat.pure.caveat.is_some()), (0.0, true));
        let rising = verdict((0.1, -0.3, 0.0), 0.05, 0);
        assert_eq!((rising.verdict, rising.preferred), (Verdict::NotIdentifiable, Variant::Pure));
    }

    #[test]
    fn three_sizes_allow_one_law_only() {
        let points = synthetic((1.0, 0.5, 0.0), &SIZES[..3], 1, SILENT, 0);
        let comparison = compare(&points, None, Seed(0)).unwrap();
        assert!(comparison.floor.is_none() && comparison.pure_aicc.is_none());
        assert_eq!((comparison.preferred, comparison.verdict), (Variant::Pure, Verdict::NotIdentifiable));
        let sentence = comparison.sentence;
        assert!(
            sentence.contains("3 numbers of images are too few") && !sentence.contains("no asymptote"),
            "{sentence}"
        );
    }

    #[test]
    fn a_floor_in_five_exact_points_is_found_though_aicc_cannot_speak() {
        let sizes = [100.0, 1000.0, 5000.0, 10_000.0, 40_000.0];
        let of = |law| compare(&synthetic(law, &sizes, 1, SILENT, 0), None, Seed(0)).unwrap();
        let lifted = of((1.0, 0.5, 0.02));
        assert!(lifted.floor_aicc.is_none() && lifted.floor_p.unwrap() < 1e-6);
        assert_eq!((lifted.preferred, lifted.verdict), (Variant::Floor, Verdict::FloorDominated));
        assert!((lifted.law().floor.unwrap().value / 0.02 - 1.0).abs() < 1e-6);
        let pure = of((1.0, 0.5, 0.0));
        assert_eq!((pure.preferred, pure.verdict), (Variant::Pure, Verdict::EpistemicDominated));
        assert!(pure.sentence.contains("shows no asymptote"), "{}", pure.sentence);
    }

    #[test]
    fn no_asymptote_is_said_only_where_the_floors_interval_is_low() {
        // Half of 0.038 at the last N is a floor, and 10 % of scatter hides it.
        let sizes = [100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0];
        let (mut hidden, mut said) = (0, 0);
        for draw in 0..20 {
            let points = synthetic((1.0, 0.5, 0.02), &sizes, 3, Noise { run: 0.1, ..SILENT }, draw);
            let found = compare(&points, None, Seed(draw)).unwrap();
            hidden += u32::from(found.preferred == Variant::Pure);
            said += u32::from(found.sentence.contains("shows no asymptote"));
            assert_eq!(
                found.sentence.contains("no asymptote"),
                found.law().floor.is_none() && found.verdict == Verdict::EpistemicDominated
            );
        }
        println!("hidden {hidden}, denied {said} of 20");
        assert!(hidden >= 10 && said <= 1, "{hidden} {said}");
    }

    #[test]
    fn no_asymptote_lies_above_the_value_at_the_largest_n() {
        for draw in 0..20 {
            let points = synthetic((1.0, 0.06, 0.0), &SIZES[..5], 2, Noise { run: 0.03, ..SILENT }, draw);
            let found = compare(&points, None, Seed(draw)).unwrap();
            let Some((_, rest)) = found.sentence.split_once("an asymptote of up to ") else { continue };
            let (most, rest) = rest.split_once(" (95 %), ").unwrap();
            let percent: f64 = rest.split_once(" %").unwrap().0.parse().unwrap();
            assert!(percent < 100.0 && most.parse::<f64>().unwrap() < found.pure.value(2500.0), "{}", found.sentence);
        }
        // By hand: the upper end above, and below, the value at the largest N.
        let mut found =
            compare(&synthetic((1.0, 0.3, 0.0), &SIZES, 2, Noise { run: 0.01, ..SILENT }, 0), None, Seed(0)).unwrap();
        (found.floor_p, found.floor_aicc) = (Some(0.5), found.pure_aicc);
        let last = found.pure.value(SIZES[7]);
        for (share, word) in
            [(1.03, "do not exclude (95 %) that the value at N = 45000 is"), (0.8, "80 % of the value there")]
        {
            found.floor.as_mut().unwrap().floor.as_mut().unwrap().interval.high = share * last;
            let (verdict, sentence) = of_a_power(&found);
            assert_eq!(verdict, Verdict::NotIdentifiable);
            assert!(sentence.contains(word) && !sentence.contains("103 %"), "{sentence}");
        }
    }

    #[test]
    fn where_only_one_test_speaks_for_a_floor_the_points_do_not_tell() {
        let found = verdict((1.0, 0.5, 0.02), 0.1, 0);
        assert_eq!(found.preferred, Variant::Floor);
        let (none, all) = (found.pure_aicc, found.floor_aicc);
        // AICc against the floor, the F test for it; and the reverse.
        for (floor_aicc, floor_p, word) in
            [(none, found.floor_p, "by an F test"), (all, Some(0.3), "lie off the curve")]
        {
            let doubtful = Comparison { floor_aicc, floor_p, preferred: Variant::Pure, ..found.clone() };
            let (verdict, sentence) = conclude(&doubtful, false);
            assert_eq!(verdict, Verdict::NotIdentifiable);
            assert!(sentence.contains(word) && sentence.contains("fits better"), "{sentence}");
        }
    }

    #[test]
    fn table_2_of_the_paper() {
        let of = |values: [f64; 5]| {
            let sizes = [100.0, 1000.0, 5000.0, 10_000.0, 40_000.0];
            let points: Vec<Point> =
                sizes.iter().zip(values).map(|(&n, value)| Point { n, seed: 0, value, error: 0.0 }).collect();
            compare(&points, None, Seed(0)).unwrap()
        };
        let resnet = of([0.160, 0.090, 0.058, 0.033, 0.026]);
        println!("{}\n{:?} R² {}", resnet.sentence, resnet.pure.alpha, resnet.pure.r_squared);
        // It falls; five runs do not say whether to nothing.
        assert_eq!((resnet.preferred, resnet.verdict), (Variant::Pure, Verdict::NotIdentifiable));
        assert!(resnet.sentence.starts_with("The value falls") && resnet.sentence.contains("cannot tell"));
        // The slope of the five logarithms; the text's 0.039 ± 0.007 is ResNet-50's.
        assert!((resnet.pure.alpha.value - 0.315_650).abs() < 1e-6, "{}", resnet.pure.alpha.value);
        let vit = of([0.131, 0.141, 0.099, 0.117, 0.117]);
        println!("{}", vit.sentence);
        assert_eq!(vit.verdict, Verdict::NotIdentifiable);
    }
}

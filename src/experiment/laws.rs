//! Figures and tables of the laws of a grid (BLC figure 2, table 2): loss against N with fitted
//! laws.

use std::collections::BTreeSet;

use super::cell::CellResult;
use super::summary::{Law, Summary};
use crate::classifier::Labels;
use crate::figure::{Axis, Figure, Point, Rule, Series, Style, Table, Value, Way};
use crate::measure::{Comparison, Estimate, HoldOut, ImageError, Measured, PowerLaw, Resampling};

/// Points at which a law is drawn.
pub const CURVE: usize = 48;

/// Loss against N, accuracy against N, and what the loss curve alone would say.
pub fn figures(summary: &Summary) -> Vec<Figure> {
    if summary.cells.is_empty() {
        return Vec::new();
    }
    let curves = summary.curves.iter().flat_map(|curves| curves.figures());
    [loss(summary), accuracy(summary)].into_iter().chain(curves).collect()
}

fn loss(summary: &Summary) -> Figure {
    let fits = fitted(summary);
    let mut figure = Figure {
        id: "scaling-loss".into(),
        title: "Loss over the number of training images".into(),
        caption: format!(
            "Epistemic part KL(p || q) of each classifier with its fitted law and the law's 95 % band, over {}, {OVER_FORMS}; the aleatoric \
             part, the same for all, as a line no loss falls below. Every point is one training run, its bar the 95 % interval over test images.",
            drawn_over(&fits)
        ) + &how_intervals_come(&fits)
            + &how_bands_differ(&fits),
        x: images(),
        y: Axis::log10("loss per image").in_unit("nats"),
        ..Figure::default()
    };
    let lengths: BTreeSet<&String> = summary.laws.iter().filter_map(|law| law.training.as_ref()).collect();
    for length in &lengths {
        let whose = summary.laws.iter().filter(|law| law.training.as_ref() == Some(*length));
        let whose = if lengths.len() > 1 { whose.map(name).collect::<Vec<_>>().join(", ") } else { "Each run".into() };
        figure.caption += &format!(" {whose} trained for {length}.");
    }
    for (colour, law) in summary.laws.iter().enumerate() {
        if let Some(fits) = &law.fits {
            figure.series.push(Series { colour, ..law_series(fits, format!("{}, law of KL", name(law))) });
        }
        if let Some(held) = &law.hold_out {
            figure
                .series
                .push(Series { colour, ..hold_out_series(held, format!("{}, law without the largest N", name(law))) });
            figure.caption += &format!(" {}: {}", name(law), held.sentence);
        }
        let parts: [(&str, bool, Part); 2] = [("KL", false, |m| m.epistemic), ("L", true, |m| m.cross_entropy)];
        for (part, dashed, of) in parts {
            let (name, points) = (format!("{}, {part}", name(law)), points(summary, law, of));
            figure.series.push(Series { name, style: Style::Points, colour, points, dashed, ..Series::default() });
        }
    }
    if let Some(Estimate { value: at, interval }) = summary.aleatoric {
        let (low, high) = (Some(interval.low), Some(interval.high));
        figure.rules.push(Rule { way: Way::Horizontal, at, low, high, label: "aleatoric A".into() });
    }
    figure
}

fn accuracy(summary: &Summary) -> Figure {
    let mut figure = Figure {
        id: "scaling-accuracy".into(),
        title: "Expected accuracy over the number of training images".into(),
        caption: "Mean exact posterior of each classifier's decision: its accuracy over all labels that could have been drawn. Bars are 95 % \
                  intervals over test images; the line is the Bayes decision on the same images."
            .into(),
        x: images(),
        y: Axis::linear("expected accuracy"),
        ..Figure::default()
    };
    for (colour, law) in summary.laws.iter().enumerate() {
        let points = points(summary, law, |m| m.expected_accuracy);
        figure.series.push(Series { name: name(law), style: Style::Points, colour, points, ..Series::default() });
    }
    if let Some(Estimate { value: at, interval }) = summary.bayes_accuracy {
        let (low, high) = (Some(interval.low), Some(interval.high));
        figure.rules.push(Rule { way: Way::Horizontal, at, low, high, label: "Bayes accuracy".into() });
    }
    figure
}

/// The laws of a summary, by name.
fn fitted(summary: &Summary) -> Vec<(String, &PowerLaw)> {
    summary.laws.iter().filter_map(|law| Some((name(law), law.fits.as_ref()?.law()))).collect()
}

/// What bands of laws are over besides.
pub const OVER_FORMS: &str = "and from four different N on over curves with and without a floor";

/// What the intervals of laws are over.
fn drawn_over(laws: &[(String, &PowerLaw)]) -> &'static str {
    let any = |how: Resampling| laws.iter().any(|(_, law)| law.resampling == how);
    if any(Resampling::SeedsAndPoints) || laws.is_empty() {
        "seeds, sizes and the test images that all runs share"
    } else if any(Resampling::SizesAndPoints) {
        "sizes, runs and the test images that all runs share"
    } else {
        "runs and the test images that all runs share"
    }
}

/// What the intervals of laws hold of the test images and of seeds, with a space before; empty without
/// laws.
pub fn how_intervals_come(laws: &[(String, &PowerLaw)]) -> String {
    how_test_images_count(laws) + &how_seeds_count(laws)
}

/// Which intervals leave out what runs of one seed have in common; empty where none does.
fn how_seeds_count(laws: &[(String, &PowerLaw)]) -> String {
    let alone: Vec<(&str, &str)> =
        laws.iter().filter_map(|(name, law)| Some((name.as_str(), law.left_out()?))).collect();
    let Some((_, why)) = alone.first() else { return String::new() };
    if alone.len() == laws.len() && alone.iter().all(|(_, other)| other == why) {
        return format!(" Intervals: {why}.");
    }
    alone.iter().map(|(name, why)| format!(" Intervals of {name}: {why}.")).collect()
}

/// How the intervals of laws hold the error of the test images.
fn how_test_images_count(laws: &[(String, &PowerLaw)]) -> String {
    let of = |how: ImageError| -> Vec<&str> {
        laws.iter().filter(|(_, law)| law.image_error == how).map(|(name, _)| name.as_str()).collect()
    };
    let said = [
        (ImageError::Resampled, "each replicate of a law draws the test images anew, the same for all runs"),
        (
            ImageError::Common,
            "the error of the test images counts as one of all runs, for what they scored on each image is not kept",
        ),
        (ImageError::Unknown, "the error of the test images is not in the intervals of laws"),
    ];
    let all = laws.len();
    let sentence = |(how, said): (ImageError, &str)| {
        let whose = of(how);
        let all_of_them = whose.len() == all;
        (!whose.is_empty()).then(|| match all_of_them {
            true => format!(" Intervals: {said}."),
            false => format!(" Intervals of {}: {said}.", whose.join(", ")),
        })
    };
    said.into_iter().filter_map(sentence).collect()
}

/// How the bands of laws that were read from a file, which are drawn anew, hold the error of the test images otherwise than
/// their intervals do, with a space before; empty where none does.
fn how_bands_differ(laws: &[(String, &PowerLaw)]) -> String {
    let of = |how: ImageError, said: &str| {
        let differ = |law: &PowerLaw| law.image_error_drawn() == how && law.image_error != how;
        let whose: Vec<&str> = laws.iter().filter(|(_, law)| differ(law)).map(|(name, _)| name.as_str()).collect();
        let bands = if whose.len() == laws.len() { String::new() } else { format!(" of {}", whose.join(", ")) };
        (!whose.is_empty()).then(|| {
            format!(
                " The bands{bands} are those of laws read from a file, without what was scored on each image: {said}."
            )
        })
    };
    [
        (ImageError::Common, "in them the error of the test images counts as one of all runs"),
        (ImageError::Unknown, "the error of the test images is not in them"),
    ]
    .into_iter()
    .filter_map(|(how, said)| of(how, said))
    .collect()
}

/// The exponents (BLC figure 2d), and how the laws stand the test of the largest N.
pub fn tables(summary: &Summary) -> Vec<Table> {
    let curves = summary.curves.iter().flat_map(|curves| curves.tables());
    exponent_table(&fitted(summary)).into_iter().chain(held_out(summary)).chain(curves).collect()
}

fn held_out(summary: &Summary) -> Option<Table> {
    let tested: Vec<_> = summary.laws.iter().filter_map(|law| Some((name(law), law.hold_out.clone()?))).collect();
    hold_out_table(&tested)
}

/// What laws without the largest N forecast for it, beside what came; none without laws.
pub fn hold_out_table(laws: &[(String, HoldOut)]) -> Option<Table> {
    let caption = "KL that the law fitted without the largest N forecasts for the geometric mean of the runs there, with its 95 % prediction \
                   interval given the test images; and what came, with its 95 % interval over runs and test images. The law holds where what \
                   came lies in the interval of the forecast; where that spans a factor of 100 or more it is too uncertain to test the law.";
    (!laws.is_empty()).then(|| {
        Table::of(laws)
            .words("classifier", |(name, _)| name.clone())
            .words("fitted over N", |(_, HoldOut { fitted: [first, last], .. })| format!("{first} to {last}"))
            .words("held-out N", |(_, held)| held.n)
            .column("forecast", "nats", 4, |(_, held)| Value::of(held.forecast, 1.0))
            .column("came", "nats", 4, |(_, held)| Value::of(held.came, 1.0))
            .words("holds", |(_, held)| match held.holds {
                true if held.is_too_uncertain() => "too uncertain",
                true => "yes",
                false => "no",
            })
            .named("scaling-hold-out", "Laws tested by the largest N", caption)
    })
}

/// The exponents of laws, by name; none without laws.
pub fn exponent_table(laws: &[(String, &PowerLaw)]) -> Option<Table> {
    let caption = format!(
        "KL = a·N^(−α) + floor, least squares in log-log over all N and seeds, with 95 % intervals over {}, given the form of the law.",
        drawn_over(laws)
    ) + &how_intervals_come(laws);
    (!laws.is_empty()).then(|| {
        Table::of(laws)
            .words("classifier", |(name, _)| name.clone())
            .column("α", "", 3, |(_, fit)| Value::of(fit.alpha, 1.0))
            .column("a", "nats", 3, |(_, fit)| Value::of(fit.a, 1.0))
            .column("floor", "nats", 5, |(_, fit)| Value::of_any(fit.floor, 1.0))
            .column("R²", "", 3, |(_, fit)| fit.r_squared)
            .named("scaling-exponents", "Scaling exponents", caption)
    })
}

type Part = fn(&Measured) -> Estimate;

fn images() -> Axis {
    Axis::log10("training images N")
}

fn name(law: &Law) -> String {
    match law.labels {
        Labels::Drawn => law.architecture.label().to_owned(),
        told => format!("{}, {}", law.architecture.label(), told.label()),
    }
}

/// A part of every cell of a law, a point each.
fn points(summary: &Summary, law: &Law, of: Part) -> Vec<Point> {
    let cells = summary.cells.iter().filter(|r| r.cell.architecture == law.architecture && r.cell.labels == law.labels);
    let point = |result: &CellResult| {
        let (cell, Estimate { value, interval }) = (&result.cell, of(&result.measured));
        let label = Some(format!("seed {}", cell.seed));
        Point { label, ..Point::new(cell.train_size as f64, value).within(interval.low, interval.high) }
    };
    cells.map(point).collect()
}

/// A law from the smallest to the largest N that was run, evenly in log N: N, KL, and the ends of
/// its band.
pub fn law_course(fits: &Comparison) -> Vec<[f64; 4]> {
    let sizes = fits.pure.points.iter().map(|point| point.n);
    let (low, high) = sizes.fold((f64::MAX, 0.0_f64), |(low, high), n| (low.min(n), high.max(n)));
    fits.course((0..CURVE).map(|i| low * (high / low).powf(i as f64 / (CURVE - 1) as f64)))
}

/// The law to use with its band.
pub fn law_series(fits: &Comparison, name: String) -> Series {
    let points = law_course(fits).into_iter().map(|[n, kl, low, high]| Point::new(n, kl).within(low, high)).collect();
    Series { name, style: Style::Line, points, band: true, ..Series::default() }
}

/// The law fitted without the largest N, drawn on to it, with the interval of its forecast there.
pub fn hold_out_series(held: &HoldOut, name: String) -> Series {
    let interval = held.forecast.interval;
    let last = Point::new(held.n, held.forecast.value).within(interval.low, interval.high);
    let points = held
        .course(CURVE)
        .take(CURVE - 1)
        .map(|[n, value]| Point::new(n, value))
        .chain(std::iter::once(last))
        .collect();
    Series { name, style: Style::Line, points, dashed: true, ..Series::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Point as Run, Variant, fit};
    use crate::units::Seed;

    #[test]
    fn captions_say_of_which_intervals_seeds_are_no_part() {
        let of = |seeds: u64, apart: bool| {
            let run = |(i, n): (u64, f64)| (0..seeds).map(move |seed| (n, if apart { seed + 10 * i } else { seed }));
            let runs = (0..).zip([100.0, 300.0, 1000.0, 3000.0]).flat_map(run);
            let scattered = runs.enumerate().map(|(i, (n, seed)): (usize, (f64, u64))| {
                let value = n.powf(-0.3) * if i % 2 == 0 { 1.02 } else { 0.98 };
                Run { n, seed, value, error: 0.0 }
            });
            fit(&scattered.collect::<Vec<_>>(), Variant::Pure, Seed(0)).unwrap()
        };
        let (one, three, apart, nested) = (of(1, false), of(3, false), of(1, true), of(2, true));
        let caption = |laws: &[(&str, &PowerLaw)]| {
            let named: Vec<(String, &PowerLaw)> = laws.iter().map(|(name, law)| ((*name).to_owned(), *law)).collect();
            exponent_table(&named).unwrap().caption
        };
        let said = caption(&[("linear", &one)]);
        assert!(said.contains("over runs and") && said.contains("Intervals: one seed: what its runs have in common"));
        let both = caption(&[("linear", &one), ("MLP", &three)]);
        assert!(both.contains("over seeds") && both.contains("Intervals of linear: one seed"), "{both}");
        assert!(!caption(&[("MLP", &three)]).contains("one seed"));
        for (law, over) in [(&apart, "over runs and"), (&nested, "over sizes, runs and")] {
            let alone = caption(&[("MLP", law)]);
            assert!(alone.contains(over) && alone.contains("too few runs share both a seed and an N"), "{alone}");
        }
    }
}

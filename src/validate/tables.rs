//! Tables of a validation.

use super::{DELTA_LEVELS, Fidelity, TwoSample, Validation};
use crate::figure::{Table, Value};
use crate::flow::Precision;
use crate::measure::fidelity::{Compared, InceptionScore};
use crate::measure::{Estimate, Interval, NATS, UNBOUNDED, student_half, wilson};
use crate::oracle::evaluate::Evaluation;

/// Fidelity, likelihood and exactness, classes, and nearest pairs; without those that are empty.
pub fn tables(validation: &Validation) -> Vec<Table> {
    let mut tables = vec![exactness(validation)];
    if let Some(fidelity) = &validation.fidelity {
        tables.insert(0, similarity(fidelity, validation.two_sample.as_ref()));
        tables.extend(classes(validation, fidelity));
        tables.push(closest(fidelity));
    }
    tables
}

/// Title of the column that says how a figure is read: the window shows it below the figure's name.
pub const READING: &str = "how to read it";

/// A row of [`beside`].
struct Line {
    figure: String,
    generated: Value,
    held_out: Value,
    reading: String,
}

fn line(figure: impl Into<String>, [generated, held_out]: [Value; 2], reading: &str) -> Line {
    Line { figure: figure.into(), generated, held_out, reading: reading.to_owned() }
}

/// One figure of both sets.
fn both<T>(of: &Compared<T>, value: impl Fn(&T) -> Value) -> [Value; 2] {
    [value(&of.generated), value(&of.held_out)]
}

fn similarity(f: &Fidelity, test: Option<&TwoSample>) -> Table {
    let [train, held_out, generated] = f.n;
    let test_caption = test.map_or_else(String::new, |test| format!(" {}", test.describe()));
    let caption = format!(
        "{generated} generated and {held_out} held-out images against {train} training images; FID against {}. FID with its bias, inception score, \
         precision, recall, density and coverage, which change with the number of images, are of {} of each. Features: {} ({} of \
         each image). The column of held-out images is what a perfect generator would get. Copies: training images are compared {}. \
         Threshold of a copy: {}.{test_caption} 95 % intervals over images.",
        f.fid_against,
        generated.min(held_out),
        f.features.name,
        f.features.dims,
        f.near.forms_from,
        f.near.threshold_from
    );
    let told_apart = test.map(|test| {
        let reading = "50 is best: a network cannot tell them from real images";
        line("two-sample test, right (%)", both(&test.right, percent), reading)
    });
    let mut lines: Vec<Line> = [distances(f), manifolds(f), memory(f)].into_iter().flatten().collect();
    lines.splice(0..0, told_apart);
    Table::of(&lines)
        .words("figure", |line| line.figure.as_str())
        .column("generated", "", 2, |line| line.generated.clone())
        .column("held-out", "", 2, |line| line.held_out.clone())
        .words(READING, |line| line.reading.as_str())
        .named("validate-beside", "Generated images beside held-out real ones", caption)
}

fn percent(e: &Estimate) -> Value {
    Value::of(*e, 100.0)
}

/// FID, KID, inception score.
fn distances(f: &Fidelity) -> Vec<Line> {
    let mut rows = vec![
        line("FID", both(&f.plain_fid, |value| (*value).into()), "0 is best; grows as images get fewer"),
        line("FID without its bias in 1/n", both(&f.fid, |u| Value::of(u.estimate, 1.0)), "0 is best"),
    ];
    if let Some(kid) = &f.kid {
        let name = format!("KID × 1000 (blocks of {})", kid.generated.block);
        rows.push(line(name, both(kid, |k| Value::of(k.estimate, 1e3)), "0 is best, at any number of images"));
    }
    let score = |s: &InceptionScore| Value::within(s.mean, s.interval.low, s.interval.high);
    let name = format!("inception score, at most {}", f.features.classes);
    rows.push(line(name, both(&f.inception, score), "as that of real images is best"));
    rows
}

/// Precision, recall, density, coverage.
fn manifolds(f: &Fidelity) -> Vec<Line> {
    let level = 100.0 * f.coverage.level;
    let equal = format!("{:.1} % for equal distributions in these numbers", 100.0 * f.expected_coverage);
    vec![
        line("precision (%)", both(&f.precision, |m| percent(&m.precision)), "generated images among the real ones"),
        line("recall (%)", both(&f.precision, |m| percent(&m.recall)), "real images among the generated ones"),
        line("density", both(&f.density, |m| Value::of(m.density, 1.0)), "about 1 for equal distributions"),
        line("coverage (%)", both(&f.density, |m| percent(&m.coverage)), &equal),
        line(
            "coverage at a real threshold (%)",
            [percent(&f.coverage.share), level.into()],
            "held-out images that generated ones come as near to as training images do",
        ),
        line(
            "coverage as in the paper (%)",
            [(100.0 * f.coverage.paper.share).into(), Value::Nothing],
            &format!("{level:.0} % by construction, for any generator"),
        ),
    ]
}

/// Nearness to training images.
fn memory(f: &Fidelity) -> Vec<Line> {
    let memory = &f.near.memory;
    let within = format!("within {:.3} of a training image (%)", memory.threshold);
    let mut rows = vec![
        match memory.quantile {
            None => line(within, both(&memory.rate, percent), "more than held-out images: copies"),
            Some(level) => line(
                within,
                [percent(&memory.rate.generated), (100.0 * level).into()],
                "held-out images by construction; a larger share than theirs: copies",
            ),
        },
        line("median distance to training images", both(&memory.median, |&m| m.into()), "less than held-out: copies"),
        line(
            "P(farther than a held-out image)",
            [Value::of(memory.ranks.farther, 1.0), 0.5.into()],
            "below ½: copies; above: other images than the real ones",
        ),
        line("Z_U of that rank test", [memory.ranks.z.into(), 0.0.into()], "below −3: copies"),
    ];
    if let Some(copying) = &f.near.copying {
        let value = match (copying.c_t, copying.interval) {
            (Some(value), Some(Interval { low, high })) => Value::within(value, low, high),
            _ => Value::Nothing,
        };
        rows.push(line("C_T over the classes", [value, 0.0.into()], "below −3: copies in some class"));
    }
    rows
}

/// Share of images that are right, per cent.
fn right(e: &Evaluation) -> Value {
    let Interval { low, high } = wilson(e.right(), e.images);
    Value::within(100.0 * e.accuracy, 100.0 * low, 100.0 * high)
}

/// A mean over images within `range` with Student's interval; one image has no interval.
fn over_images(mean: f64, std_error: f64, images: usize, [least, most]: [f64; 2]) -> Value {
    let half = student_half(std_error, images);
    if half.is_finite() { Value::within(mean, (mean - half).max(least), (mean + half).min(most)) } else { mean.into() }
}

/// Of the passes of a round trip, in words.
fn arithmetic(precision: Precision) -> &'static str {
    match precision {
        Precision::F32 => "32 bits",
        Precision::F64 => "64 bits, the noise between rounded to 32",
    }
}

fn exactness(v: &Validation) -> Table {
    let mut rows: Vec<(&str, Value, usize)> = Vec::new();
    if let Some(e) = &v.likelihood {
        let around = |mean: f64, error: f64| over_images(mean, error, e.images, UNBOUNDED);
        let per_bit = e.bits_per_dim / e.nll_nats;
        rows.extend([
            ("bits per dimension", around(e.bits_per_dim, per_bit * e.nll_std_error), e.images),
            ("NLL (nats per image)", around(e.nll_nats, e.nll_std_error), e.images),
            ("right by the exact posterior (%)", right(e), e.images),
        ]);
        if let (Some(mean), Some(error)) = (e.entropy_nats, e.entropy_std_error) {
            rows.push((
                "mean entropy of the exact posterior (nats)",
                over_images(mean, error, e.images, NATS),
                e.images,
            ));
        }
    }
    let trip = &v.round_trip;
    let largest = format!("{:.1e}", trip.largest_levels);
    rows.push(("round trip, largest error (8-bit levels)", largest.into(), trip.images));
    rows.push(("round trip, mean error (8-bit levels)", scientific(trip.mean_levels).into(), trip.images));
    if let Some(moved) = &v.stability {
        let of = &moved.stability;
        rows.push(("KL of perturbed posteriors (nats)", scientific(of.kl).into(), of.n));
        rows.push(("decisions changed by it (%)", Value::of(of.changed, 100.0), of.n));
    }
    let caption = format!(
        "Likelihood at τ = 1 and a uniform prior. Round trip: image → noise → image in {}. Perturbation: normal noise of {} of an \
         8-bit level on every value, posteriors in 64 bits (the paper does not give its perturbation). 95 % intervals over images.",
        arithmetic(v.spec.precision),
        DELTA_LEVELS
    );
    Table::of(&rows)
        .words("figure", |(figure, ..)| *figure)
        .column("value", "", 3, |(_, value, _)| value.clone())
        .words("over", |(.., images)| format!("{images} images"))
        .named("validate-exactness", "Held-out images in this world", caption)
}

/// Small numbers, whose digits behind the point are zeros.
fn scientific(Estimate { value, interval: Interval { low, high } }: Estimate) -> String {
    format!("{value:.2e} [{low:.2e}, {high:.2e}]")
}

fn classes(v: &Validation, f: &Fidelity) -> Option<Table> {
    let (diversity, texture) = (f.diversity.as_ref()?, f.texture.as_ref()?);
    let window = texture.first().map_or(0, |t| t.window);
    let caption = "Ratios to the training images of the class; 1 is as diverse as these, less is a class that collapses or is smoothed \
                   (BLC App. A.3, A.6: texture 0.56 to 0.69). 95 % intervals by the delta method.";
    let of = |estimate: Option<Estimate>| Value::of_any(estimate, 1.0);
    let rows = diversity.generated.iter().zip(&diversity.held_out).zip(texture);
    let table = Table::of(rows.map(|((made, real), texture)| (made, real, texture)))
        .words("class", |(made, ..)| v.class_names[made.class].as_str())
        .column("feature variance, generated", "", 3, |(made, ..)| of(made.variance))
        .column("feature variance, held-out", "", 3, |(_, real, _)| of(real.variance))
        .column("pairwise distance, generated", "", 3, |(made, ..)| of(made.distance))
        .column("pairwise distance, held-out", "", 3, |(_, real, _)| of(real.distance))
        .column(&format!("texture {window}×{window}, generated"), "", 3, |(.., t)| of(t.within.generated))
        .column(&format!("texture {window}×{window}, held-out"), "", 3, |(.., t)| of(t.within.held_out))
        .column("pixel variance, generated", "", 3, |(.., t)| of(t.whole.generated))
        .column("pixel variance, held-out", "", 3, |(.., t)| of(t.whole.held_out));
    Some(table.named("validate-classes", "Diversity and texture of each class", caption))
}

fn closest(f: &Fidelity) -> Table {
    let [_, held_out, generated] = f.n;
    let caption = format!(
        "The generated images nearest to a training image, and how near the nearest held-out images come. The nearest of more \
         images is nearer: these are of {generated} generated and {held_out} held-out ones. Training images are compared {}.",
        f.near.forms_from
    );
    let pairs = &f.near.closest;
    let ranked = pairs.generated.iter().enumerate().map(|(i, pair)| (i + 1, pair, pairs.held_out.get(i)));
    Table::of(ranked.take(12))
        .words("rank", |(rank, ..)| rank.to_string())
        .column("distance", "", 4, |(_, pair, _)| pair.distance)
        .words("generated image", |(_, pair, _)| pair.image.to_string())
        .words("training image", |(_, pair, _)| pair.neighbour.to_string())
        .words("its form", |(_, pair, _)| pair.form.to_string())
        .column("distance of held-out", "", 4, |(.., held_out)| held_out.map(|pair| pair.distance))
        .named("validate-closest", "Nearest pairs", caption)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_over_images_has_students_interval_where_there_is_one() {
        assert_eq!(over_images(7.0, 0.0, 1, NATS), Value::from(7.0));
        let shown = |range| over_images(1.0, 0.1, 2, range).show(3);
        // t of one degree of freedom is 12.706; an entropy is not below 0.
        assert_eq!([shown(UNBOUNDED), shown(NATS)], ["1.000 [-0.271, 2.271]", "1.000 [0.000, 2.271]"]);
    }
}

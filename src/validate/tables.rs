//! Tables of a validation.

use super::{DELTA_LEVELS, Fidelity, Validation};
use crate::figure::{Column, Table, Value};
use crate::measure::fidelity::{Beside, ClassDiversity, InceptionScore};
use crate::measure::{Estimate, Interval, Z95};

/// Fidelity, likelihood and exactness, classes, and nearest pairs, as far as there is something in them.
pub fn tables(validation: &Validation) -> Vec<Table> {
    let mut tables = vec![exactness(validation)];
    if let Some(fidelity) = &validation.fidelity {
        tables.insert(0, beside(fidelity));
        tables.extend(classes(validation, fidelity));
        tables.push(closest(fidelity));
    }
    tables
}

/// A row of [`beside`]: the figure, both values, how it is read.
fn row(name: impl Into<String>, [generated, held_out]: [Value; 2], reading: &str) -> Vec<Value> {
    vec![name.into().into(), generated, held_out, reading.into()]
}

/// One figure of both sets.
fn both<T>(of: &Beside<T>, value: impl Fn(&T) -> Value) -> [Value; 2] {
    [value(&of.generated), value(&of.held_out)]
}

fn beside(f: &Fidelity) -> Table {
    let [train, held_out, generated] = f.n;
    Table {
        id: "validate-beside".into(),
        title: "Generated images beside held-out real ones".into(),
        caption: format!(
            "{generated} generated and {held_out} held-out images against {train} training images; FID against {}. FID with its bias, inception score, \
             precision, recall, density and coverage, which change with the number of images, are of {} of each. Features: {} ({} of \
             each image). The column of held-out images is what a perfect generator would get. Threshold of a copy: {}. 95 % intervals \
             over images.",
            f.fid_against,
            generated.min(held_out),
            f.features.name,
            f.features.dims,
            f.threshold_from
        ),
        columns: vec![
            Column::new("figure", 0),
            Column::new("generated", 2),
            Column::new("held-out", 2),
            Column::new("how to read it", 0),
        ],
        rows: [distances(f), manifolds(f), memory(f)].concat(),
    }
}

fn percent(e: &Estimate) -> Value {
    Value::of(*e, 100.0)
}

/// FID, KID, inception score.
fn distances(f: &Fidelity) -> Vec<Vec<Value>> {
    let mut rows = vec![
        row("FID", both(&f.plain_fid, |value| (*value).into()), "0 is best; grows as images get fewer"),
        row("FID without its bias in 1/n", both(&f.fid, |u| Value::of(u.estimate, 1.0)), "0 is best"),
    ];
    if let Some(kid) = &f.kid {
        let name = format!("KID × 1000 (blocks of {})", kid.generated.block);
        rows.push(row(name, both(kid, |k| Value::of(k.estimate, 1e3)), "0 is best, at any number of images"));
    }
    let score = |s: &InceptionScore| Value::within(s.mean, s.interval.low, s.interval.high);
    let name = format!("inception score, at most {}", f.features.classes);
    rows.push(row(name, both(&f.inception, score), "as that of real images is best"));
    rows
}

/// Precision, recall, density, coverage.
fn manifolds(f: &Fidelity) -> Vec<Vec<Value>> {
    let level = 100.0 * f.coverage.level;
    let equal = format!("{:.1} % for equal distributions in these numbers", 100.0 * f.expected_coverage);
    vec![
        row("precision (%)", both(&f.precision, |m| percent(&m.precision)), "generated images among the real ones"),
        row("recall (%)", both(&f.precision, |m| percent(&m.recall)), "real images among the generated ones"),
        row("density", both(&f.density, |m| Value::of(m.density, 1.0)), "about 1 for equal distributions"),
        row("coverage (%)", both(&f.density, |m| percent(&m.coverage)), &equal),
        row(
            "coverage at a real threshold (%)",
            [percent(&f.coverage.share), level.into()],
            "held-out images that generated ones come as near to as training images do",
        ),
        row(
            "coverage as in the paper (%)",
            [(100.0 * f.coverage.paper.share).into(), Value::Nothing],
            &format!("{level:.0} % by construction, for any generator"),
        ),
    ]
}

/// Nearness to training images.
fn memory(f: &Fidelity) -> Vec<Vec<Value>> {
    let memory = &f.memory;
    let mut rows = vec![
        row(
            format!("within {:.3} of a training image (%)", memory.threshold),
            both(&memory.rate, percent),
            "more than held-out images: copies",
        ),
        row("median distance to training images", both(&memory.median, |&m| m.into()), "less than held-out: copies"),
        row(
            "P(farther than a held-out image)",
            [Value::of(memory.ranks.farther, 1.0), 0.5.into()],
            "below ½: copies; above: other images than the real ones",
        ),
        row("Z_U of that rank test", [memory.ranks.z.into(), 0.0.into()], "below −3: copies"),
    ];
    if let Some(copying) = &f.copying {
        let value = match (copying.c_t, copying.interval) {
            (Some(value), Some(Interval { low, high })) => Value::within(value, low, high),
            _ => Value::Nothing,
        };
        rows.push(row("C_T over the classes", [value, 0.0.into()], "below −3: copies in some class"));
    }
    rows
}

fn exactness(v: &Validation) -> Table {
    let mut rows = Vec::new();
    if let Some(e) = &v.likelihood {
        let around = |value: f64, error: f64| Value::within(value, value - Z95 * error, value + Z95 * error);
        let per_bit = e.bits_per_dim / e.nll_nats;
        rows.extend([
            vec!["bits per dimension".into(), around(e.bits_per_dim, per_bit * e.nll_std_error), images(e.images)],
            vec!["NLL (nats per image)".into(), around(e.nll_nats, e.nll_std_error), images(e.images)],
            vec![
                "right by the exact posterior (%)".into(),
                around(100.0 * e.accuracy, 100.0 * e.accuracy_std_error),
                images(e.images),
            ],
        ]);
        if let (Some(mean), Some(error)) = (e.entropy_nats, e.entropy_std_error) {
            rows.push(vec!["mean entropy of the exact posterior (nats)".into(), around(mean, error), images(e.images)]);
        }
    }
    let trip = &v.round_trip;
    rows.extend([
        vec![
            "round trip, largest error (8-bit levels)".into(),
            format!("{:.1e}", trip.largest_levels).into(),
            images(trip.images),
        ],
        vec!["round trip, mean error (8-bit levels)".into(), scientific(trip.mean_levels).into(), images(trip.images)],
    ]);
    if let Some(moved) = &v.stability {
        let kl = scientific(moved.stability.kl);
        rows.push(vec!["KL of perturbed posteriors (nats)".into(), kl.into(), images(moved.stability.n)]);
        let changed = Value::of(moved.stability.changed, 100.0);
        rows.push(vec!["decisions changed by it (%)".into(), changed, images(moved.stability.n)]);
    }
    Table {
        id: "validate-exactness".into(),
        title: "Held-out images in this world".into(),
        caption: format!(
            "Likelihood at τ = 1 and a uniform prior. Round trip: image → noise → image in 32 bits. Perturbation: normal noise of {} of an \
             8-bit level on every value, posteriors in 64 bits (the paper does not give its perturbation). 95 % intervals over images.",
            DELTA_LEVELS
        ),
        columns: vec![Column::new("figure", 0), Column::new("value", 3), Column::new("over", 0)],
        rows,
    }
}

/// Small numbers, whose digits behind the point are zeros.
fn scientific(Estimate { value, interval: Interval { low, high } }: Estimate) -> String {
    format!("{value:.2e} [{low:.2e}, {high:.2e}]")
}

fn images(n: usize) -> Value {
    format!("{n} images").into()
}

fn classes(v: &Validation, f: &Fidelity) -> Option<Table> {
    let (diversity, texture) = (f.diversity.as_ref()?, f.texture.as_ref()?);
    let rows = diversity.generated.iter().zip(&diversity.held_out).zip(texture);
    let row = |((made, real), texture): ((&ClassDiversity, &ClassDiversity), &super::ClassTexture)| -> Vec<Value> {
        vec![
            v.class_names[made.class].as_str().into(),
            Value::of_any(made.variance, 1.0),
            Value::of_any(real.variance, 1.0),
            Value::of_any(made.distance, 1.0),
            Value::of_any(real.distance, 1.0),
            Value::of_any(texture.within.generated, 1.0),
            Value::of_any(texture.within.held_out, 1.0),
            Value::of_any(texture.whole.generated, 1.0),
            Value::of_any(texture.whole.held_out, 1.0),
        ]
    };
    let window = texture.first().map_or(0, |t| t.window);
    let of = |title: &str, set: &str| Column::new(&format!("{title}, {set}"), 3);
    let texture = format!("texture {window}×{window}");
    let columns = ["feature variance", "pairwise distance", &texture, "pixel variance"]
        .into_iter()
        .flat_map(|title| [of(title, "generated"), of(title, "held-out")]);
    Some(Table {
        id: "validate-classes".into(),
        title: "Diversity and texture of each class".into(),
        caption: "Ratios to the training images of the class; 1 is as diverse as these, less is a class that collapses or is smoothed \
                  (BLC App. A.3, A.6: texture 0.56 to 0.69). 95 % intervals by the delta method."
            .into(),
        columns: std::iter::once(Column::new("class", 0)).chain(columns).collect(),
        rows: rows.map(row).collect(),
    })
}

fn closest(f: &Fidelity) -> Table {
    let rank = |rank: usize| -> Vec<Value> {
        let generated = f.closest.generated.get(rank);
        let held_out = f.closest.held_out.get(rank);
        let number = |value: Option<usize>| value.map_or(Value::Nothing, |value| value.to_string().into());
        vec![
            (rank + 1).to_string().into(),
            generated.map(|pair| pair.distance).into(),
            number(generated.map(|pair| pair.image)),
            number(generated.map(|pair| pair.neighbour)),
            held_out.map(|pair| pair.distance).into(),
        ]
    };
    Table {
        id: "validate-closest".into(),
        title: "Nearest pairs".into(),
        caption: {
            let [_, held_out, generated] = f.n;
            format!(
                "The generated images nearest to a training image, and how near the nearest held-out images come. The nearest of more \
                 images is nearer: these are of {generated} generated and {held_out} held-out ones."
            )
        },
        columns: vec![
            Column::new("rank", 0),
            Column::new("distance", 4),
            Column::new("generated image", 0),
            Column::new("training image", 0),
            Column::new("distance of held-out", 4),
        ],
        rows: (0..f.closest.generated.len().min(12)).map(rank).collect(),
    }
}

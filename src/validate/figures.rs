//! Figures of a validation.

use super::{Fidelity, Validation};
use crate::figure::{Axis, Figure, Point, Rule, Series, Style, Way};
use crate::measure::Estimate;
use crate::measure::fidelity::{Compared, Manifold};

/// Classes a figure shows; of more, the first.
const SHOWN_CLASSES: usize = 30;

/// Distances, manifold figures and class ratios; nothing where no image was drawn.
pub fn figures(validation: &Validation) -> Vec<Figure> {
    let Some(fidelity) = &validation.fidelity else { return Vec::new() };
    let mut figures = vec![distances(fidelity), manifolds(fidelity)];
    figures.extend(ratios(validation, fidelity));
    for figure in &mut figures {
        figure.provenance = provenance(validation);
    }
    figures
}

/// World, τ, T, π, hashes, feature net, badge: what stands on every figure and page.
pub(super) fn provenance(v: &Validation) -> Vec<(String, String)> {
    let spec = &v.spec;
    let mut said = vec![
        ("badge", "estimated: 95 % intervals over images; the feature net is taken as it is".to_owned()),
        ("oracle", spec.oracle.clone()),
        ("weights SHA-256", v.weights_sha256.clone()),
        ("τ", spec.settings.tau.get().to_string()),
        ("T", spec.settings.smoothing.get().to_string()),
        ("class prior π", spec.settings.prior.describe()),
        ("real images", format!("{}, {} training, {} held out", v.corpus.name, v.corpus.train, v.corpus.held_out)),
        ("seed", spec.seed.0.to_string()),
    ];
    if let Some(f) = &v.fidelity {
        said.push(("generated images", format!("{}, rounded to 8 bits as the real ones are", f.n[2])));
        said.push(("forms of every training image", f.near.forms.to_string()));
        said.push(("features", f.features.name.clone()));
        said.extend(f.features.sha256.clone().map(|hash| ("features SHA-256", hash)));
    }
    said.push(("program", format!("bayescope {}", env!("CARGO_PKG_VERSION"))));
    said.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn distances(f: &Fidelity) -> Figure {
    let histogram = &f.near.histogram;
    let steps = |name: &str, colour: usize, counts: &[usize]| {
        let total = counts.iter().sum::<usize>().max(1) as f64;
        let bin = |(i, &count): (usize, &usize)| Point::new(histogram.edges[i], 100.0 * count as f64 / total);
        let end = histogram.edges.last().map(|&edge| Point::new(edge, 0.0));
        let points = counts.iter().enumerate().map(bin).chain(end).collect();
        Series { name: name.into(), style: Style::Steps, colour, points, ..Series::default() }
    };
    Figure {
        id: "validate-distances".into(),
        title: "Distance to the nearest training image".into(),
        caption: format!(
            "A generator that copies is nearer to its training images than held-out real images are: its staircase stands further left. \
             A probability of {:.3} [{:.3}, {:.3}] says that a generated image is farther than a held-out one; ½ is best. Line: what counts \
             as a copy ({}). Training images are compared {}.",
            f.near.memory.ranks.farther.value,
            f.near.memory.ranks.farther.interval.low,
            f.near.memory.ranks.farther.interval.high,
            f.near.threshold_from,
            f.near.forms_from
        ),
        x: Axis::linear("Euclidean distance of features"),
        y: Axis::linear("share of images").in_unit("%"),
        series: vec![
            steps("held-out real images", 1, &histogram.counts.held_out),
            steps("generated images", 0, &histogram.counts.generated),
        ],
        rules: vec![Rule {
            way: Way::Vertical,
            at: f.near.memory.threshold,
            low: None,
            high: None,
            label: "threshold of a copy".into(),
        }],
        ..Figure::default()
    }
}

/// The four figures of a set, in their order on the axis.
fn four(precision: &Manifold, density: &Manifold) -> Vec<Point> {
    let all = [precision.precision, precision.recall, density.density, density.coverage];
    all.into_iter().enumerate().map(|(x, estimate)| point(x, estimate)).collect()
}

fn point(x: usize, Estimate { value, interval }: Estimate) -> Point {
    Point::new(x as f64, value).within(interval.low, interval.high)
}

fn manifolds(f: &Fidelity) -> Figure {
    let series = |name: &str, colour: usize, dashed: bool, points: Vec<Point>| Series {
        name: name.into(),
        style: Style::Points,
        colour,
        dashed,
        points,
        ..Series::default()
    };
    Figure {
        id: "validate-manifold".into(),
        title: "Among the real images, and all of them".into(),
        caption: "Precision and density: generated images lie where real ones do. Recall and coverage: they lie wherever real ones do. \
                  None of the four has a fixed value for a perfect generator: hollow are held-out real images in its place, in equal numbers."
            .into(),
        x: Axis::named("figure", ["precision", "recall", "density", "coverage"]),
        y: Axis::linear("share, or mean number over k"),
        series: vec![
            series("held-out real images", 1, true, four(&f.precision.held_out, &f.density.held_out)),
            series("generated images", 0, false, four(&f.precision.generated, &f.density.generated)),
        ],
        ..Figure::default()
    }
}

fn ratios(v: &Validation, f: &Fidelity) -> Option<Figure> {
    let (diversity, texture) = (f.diversity.as_ref()?, f.texture.as_ref()?);
    let shown = v.class_names.len().min(SHOWN_CLASSES);
    let series = |name: &str, colour: usize, of: &dyn Fn(usize) -> Option<Estimate>| Series {
        name: name.into(),
        style: Style::Points,
        colour,
        points: (0..shown).filter_map(|class| Some(point(class, of(class)?))).collect(),
        ..Series::default()
    };
    let more = match v.class_names.len() - shown {
        0 => String::new(),
        more => format!(" {more} more classes are in the table."),
    };
    let generated = |of: &Compared<Option<Estimate>>| of.generated;
    let window = texture.first().map_or(0, |t| t.window);
    Some(Figure {
        id: "validate-classes".into(),
        title: "Generated over real, class by class".into(),
        caption: format!(
            "1 is as diverse, and as rich in texture, as the training images of the class. Variance and distance are those of features, texture \
             is the variance of pixels within windows of {window}×{window}.{more}"
        ),
        x: Axis::named("class", v.class_names.iter().take(shown).cloned()),
        y: Axis::linear("ratio to real images"),
        series: vec![
            series("feature variance", 0, &|class| diversity.generated[class].variance),
            series("pairwise distance", 1, &|class| diversity.generated[class].distance),
            series("texture", 2, &|class| generated(&texture[class].within)),
        ],
        rules: vec![Rule { way: Way::Horizontal, at: 1.0, low: None, high: None, label: "real images".into() }],
        ..Figure::default()
    })
}

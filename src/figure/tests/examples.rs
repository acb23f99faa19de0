//! Four figures as experiments make them, from invented numbers.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::figure::{Axis, Figure, Point, Rule, Series, Style, Way};

fn provenance(spec: &str) -> Vec<(String, String)> {
    let pairs = [
        ("world", "glow-mnist 9c1f4be27a60"),
        ("τ", "1"),
        ("T", "1"),
        ("seeds", "0, 1, 2"),
        ("badge", "estimated (95 % intervals)"),
        ("spec", spec),
        ("program", "bayescope 0.1.0 (d799f8c)"),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec()
}

fn noise(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// KL over N for eight architectures, with bands and a floor.
pub fn scaling() -> Figure {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let names = [
        "MLP-500",
        "MNIST ConvNet",
        "AlexNet",
        "ResNet-50 (bottleneck)",
        "WideResNet-28-10 without dropout",
        "MobileNetV3-Large",
        "ConvNeXt-Tiny, pretrained on ImageNet-1k",
        "Swin-Tiny",
    ];
    let series = names.iter().enumerate().map(|(i, name)| {
        let n = [100.0, 300.0, 1000.0, 3000.0, 10_000.0, 45_000.0];
        let points = n.map(|n: f64| {
            let y = (2.0 + i as f64) * n.powf(-0.35 - 0.03 * i as f64) * (0.05 * noise(&mut rng)).exp();
            Point::new(n, y).within(y * 0.86, y * 1.15)
        });
        Series {
            name: (*name).to_owned(),
            style: Style::LinePoints,
            colour: i,
            points: points.to_vec(),
            band: true,
            ..Series::default()
        }
    });
    let mut series: Vec<_> = series.collect();
    series[3].points[1].y = 0.0;
    series[4].points[5].y = f64::NAN;
    Figure {
        id: "scaling-kl".into(),
        title: "Epistemic error falls as a power of the training set".into(),
        caption: "Mean KL(p‖q) from the exact posterior to the classifier's, over the number of training images; both axes are logarithmic, so that a power law is a straight line. Bands are 95 % intervals over three seeds and 10,000 test images. The dashed line is the mean entropy of the exact posterior: cross-entropy cannot fall below it however many images there are.".into(),
        provenance: provenance("scaling"),
        x: Axis::log10("Training images"),
        y: Axis::log10("KL(p‖q)").in_unit("nats"),
        series,
        rules: vec![Rule { way: Way::Horizontal, at: 0.031, low: Some(0.029), high: Some(0.033), label: "aleatoric floor 0.031".into() }],
        ..Figure::default()
    }
}

/// Error over τ of three models, beside the Bayes error.
pub fn sweep() -> Figure {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let bayes = |tau: f64| 0.42 * (1.0 - (-(tau / 1.8).powi(3)).exp());
    let taus: Vec<f64> = (1..=10).map(|i| 0.2 * f64::from(i)).collect();
    let exact: Vec<_> = (0..=90).map(|i| 0.2 + 0.02 * f64::from(i)).map(|tau| Point::new(tau, bayes(tau))).collect();
    let mut series = vec![Series { name: "Bayes error (exact)".into(), colour: 6, points: exact, ..Series::default() }];
    for (i, (name, gap)) in [("Linear", 0.09), ("MLP-500", 0.035), ("WRN-28-10", 0.012)].into_iter().enumerate() {
        let points = taus.iter().map(|&tau| {
            let y = bayes(tau) + gap * (1.0 + 0.1 * noise(&mut rng));
            Point { label: Some(format!("seed {i}")), ..Point::new(tau, y).within(y - 0.006, y + 0.006) }
        });
        series.push(Series {
            name: name.into(),
            style: Style::LinePoints,
            colour: i,
            points: points.collect(),
            ..Series::default()
        });
    }
    Figure {
        id: "sweep-error".into(),
        title: "Test error and Bayes error as the world grows harder".into(),
        caption: "Share of wrongly classified test images of three models trained at each base temperature τ, with Wilson intervals over 10,000 images, beside the Bayes error of the same world, which no model can beat. The line at τ = 1 is the world as it was trained.".into(),
        provenance: provenance("temperature-sweep"),
        x: Axis::linear("Base temperature τ"),
        y: Axis::linear("Error").in_unit("fraction"),
        series,
        rules: vec![Rule { way: Way::Vertical, at: 1.0, low: None, high: None, label: "τ = 1".into() }],
        ..Figure::default()
    }
}

/// Ten shift settings with published numbers.
pub fn shift() -> Figure {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let names = [
        "baseline",
        "mild imbalance",
        "strong imbalance",
        "one class dominates (π = 0.5)",
        "two classes only",
        "noise σ = 0.05",
        "noise σ = 0.1",
        "noise σ = 0.2 and clip to [−1, 1]",
        "mild imbalance + noise σ = 0.1",
        "strong imbalance + noise σ = 0.2",
    ];
    let drop = [0.0, 0.4, 1.9, 3.2, 7.5, 0.6, 1.8, 5.1, 2.2, 8.4];
    let mut made = |name: &str, colour, factor: f64, style, faint| {
        let points = drop.iter().enumerate().map(|(i, y)| {
            let y = factor * y + 0.2 * noise(&mut rng);
            let point = Point::new(i as f64, y);
            if faint { point } else { point.within(y - 0.5, y + 0.5) }
        });
        Series { name: name.into(), style, colour, points: points.collect(), faint, ..Series::default() }
    };
    let series = vec![
        made("ResNet-50", 0, 1.0, Style::Points, false),
        made("ViT-B/16", 1, 0.7, Style::Points, false),
        made("ResNet-50 (BLC table 7)", 0, 1.1, Style::Points, true),
        made("ViT-B/16 (BLC table 8)", 1, 0.75, Style::Points, true),
    ];
    Figure {
        id: "shift-drop".into(),
        title: "Accuracy lost under ten shifts of prior and noise".into(),
        caption: "Accuracy on the fixed baseline test set minus accuracy after training on the shifted world, in percentage points; above zero is worse. Intervals are 95 % over three seeds. Hollow markers are the numbers of the paper, from another oracle: they show the order of magnitude, not a target.".into(),
        provenance: provenance("shift"),
        x: Axis::named("Shift setting", names),
        y: Axis::linear("Accuracy drop").in_unit("pp"),
        series,
        rules: vec![Rule { way: Way::Horizontal, at: 0.0, low: None, high: None, label: "no change".into() }],
        ..Figure::default()
    }
}

/// Learning curves of six query strategies.
pub fn learning() -> Figure {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let names = ["random", "max entropy of q", "exact epistemic KL(p‖q)", "margin", "BALD (ensemble of 5)", "core-set"];
    let series = names.iter().enumerate().map(|(i, name)| {
        let points = (0..25).map(|step| {
            let n = 100.0 + 100.0 * f64::from(step);
            let y = 0.97 - 0.45 * (-n / (900.0 - 90.0 * i as f64)).exp() + 0.004 * noise(&mut rng);
            let half = 0.03 * (-n / 1500.0).exp() + 0.004;
            Point::new(n, y).within(y - half, y + half)
        });
        Series {
            name: (*name).to_owned(),
            colour: i,
            points: points.collect(),
            band: true,
            dashed: i == 0,
            ..Series::default()
        }
    });
    Figure {
        id: "active-accuracy".into(),
        title: "Accuracy against labels bought".into(),
        caption: "Expected accuracy Σ p(argmax q) on 10,000 test images after each round of 100 labels, by strategy. Bands are 95 % intervals over five seeds. The random strategy is dashed.".into(),
        provenance: provenance("active-learning"),
        x: Axis::linear("Labels bought"),
        y: Axis::linear("Expected accuracy").in_unit("fraction"),
        series: series.collect(),
        rules: vec![Rule { way: Way::Horizontal, at: 0.982, low: Some(0.981), high: Some(0.983), label: "Bayes accuracy 0.982".into() }],
        ..Figure::default()
    }
}

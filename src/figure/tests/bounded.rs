//! What a figure shows, and what it says it does not show.

use super::*;

fn random_figure(rng: &mut ChaCha8Rng) -> Figure {
    let scale = |rng: &mut ChaCha8Rng| if rng.random() { Scale::Log10 } else { Scale::Linear };
    let styles = [Style::Line, Style::Points, Style::LinePoints, Style::Bars, Style::Steps];
    let end = |rng: &mut ChaCha8Rng| rng.random::<bool>().then(|| any_number(rng));
    let mut series = Vec::new();
    for colour in 0..rng.random_range(0..4) {
        let mut points = Vec::new();
        for _ in 0..rng.random_range(0..6) {
            let (x, y) = (any_number(rng), any_number(rng));
            points.push(Point { x, y, low: end(rng), high: end(rng), label: None });
        }
        let style = styles[rng.random_range(0..styles.len())];
        series.push(Series {
            name: format!("s{colour}"),
            style,
            colour,
            points,
            band: rng.random(),
            ..Series::default()
        });
    }
    let mut figure = Figure { series, ..Figure::default() };
    figure.x.scale = scale(rng);
    figure.y.scale = scale(rng);
    if rng.random_range(0..4) == 0 {
        figure.x.categories = vec!["a".into(), "b".into(), "c".into()];
    }
    if rng.random_range(0..4) == 0 {
        figure.y.range = Some([any_number(rng), any_number(rng)]);
    }
    figure
}

fn inside([low, high]: [f64; 2], value: f64) -> bool {
    (low..=high).contains(&value)
}

#[test]
fn every_point_is_shown_or_counted() {
    let mut rng = rng(3);
    for _ in 0..20_000 {
        let figure = random_figure(&mut rng);
        let Frame { x, y, omitted } = bounds(&figure);
        let points: Vec<&Point> = figure.series.iter().flat_map(|series| &series.points).collect();
        let has = |point: &Point| figure.x.shown_scale().has(point.x) && figure.y.shown_scale().has(point.y);
        let shown = points.iter().filter(|point| has(point) && inside(x, point.x) && inside(y, point.y)).count();
        let left_out = omitted.not_finite + omitted.not_positive + omitted.outside;
        assert_eq!(shown + left_out, points.len(), "{figure:?} {x:?} {y:?}");
        for (axis, [low, high]) in [(&figure.x, x), (&figure.y, y)] {
            assert!(
                axis.shown_scale().has(low) && axis.shown_scale().has(high) && low < high,
                "{figure:?} {x:?} {y:?}"
            );
        }
    }
}

#[test]
fn any_numbers_at_all_make_a_picture() {
    let mut rng = rng(4);
    for _ in 0..300 {
        let figure = random_figure(&mut rng);
        let (dark, width) = (rng.random(), any_number(&mut rng).min(500.0));
        let look = RenderOptions { dark, width, plot_height: 200.0, ..RenderOptions::default() };
        let text = svg(&figure, &look);
        assert!(
            !text.contains("NaN") && !text.contains("inf"),
            "{figure:?}\n{}",
            text.lines().filter(|l| l.contains("inf") || l.contains("NaN")).collect::<String>()
        );
        png(&figure, &look, 0.5).unwrap();
    }
}

#[test]
fn intervals_are_inside_and_zero_is_not_crossed_without_need() {
    let mut figure = examples::sweep();
    let Frame { y, omitted, .. } = bounds(&figure);
    assert_eq!(omitted, Omitted::default());
    assert!(y[0] == 0.0 && y[1] > 0.4);
    figure.series[1].points[0].low = Some(-0.2);
    assert!(bounds(&figure).y[0] < -0.2);
    figure.y.scale = Scale::Log10;
    let cut = bounds(&figure);
    assert_eq!(cut.omitted.cut, 1);
    assert_eq!(cut.omitted.to_string(), "1 interval is cut at the edge of the picture.");
}

#[test]
fn an_interval_near_zero_does_not_take_the_log_axis_from_the_points() {
    let points = vec![Point::new(1.0, 0.1).within(1e-15, 0.2), Point::new(2.0, 0.05).within(0.04, 0.06)];
    let figure =
        Figure { y: Axis::log10("KL"), series: vec![Series { points, ..Series::default() }], ..Figure::default() };
    let Frame { y, omitted, .. } = bounds(&figure);
    assert!(y[0] > 0.003 && y[0] < 0.05, "{y:?}");
    assert_eq!(omitted.cut, 1);
}

/// It was cut without a word.
#[test]
fn the_band_of_a_reference_line_is_inside_or_said_to_be_cut() {
    let points = vec![Point::new(1.0, 0.4), Point::new(2.0, 0.5)];
    let rule = |way, at: f64, band: [f64; 2]| {
        let [low, high] = band.map(Some);
        Rule { way, at, low, high, label: "truth".into() }
    };
    let rules = vec![rule(Way::Horizontal, 0.45, [0.1, 0.9]), rule(Way::Vertical, 1.5, [-1.0, 4.0])];
    let mut figure = Figure { series: vec![Series { points, ..Series::default() }], rules, ..Figure::default() };
    let Frame { x, y, omitted } = bounds(&figure);
    assert!(inside(y, 0.1) && inside(y, 0.9) && inside(x, -1.0) && inside(x, 4.0), "{x:?} {y:?}");
    assert_eq!(omitted, Omitted::default());
    figure.y.range = Some([0.3, 0.6]);
    assert_eq!(bounds(&figure).omitted.to_string(), "1 interval is cut at the edge of the picture.");
    // It does not take a log axis from the points.
    figure.y = Axis::log10("KL");
    figure.rules[0].low = Some(1e-15);
    let Frame { y, omitted, .. } = bounds(&figure);
    assert!(y[0] > 0.01 && y[1] > 0.9 && omitted.cut == 1, "{y:?}");
}

#[test]
fn what_is_left_out_is_said_in_words() {
    let text = bounds(&examples::scaling()).omitted.to_string();
    assert_eq!(text, "2 points are not shown: 1 not finite, 1 at or below zero on a log axis.");
    let mut figure = examples::learning();
    figure.y.range = Some([0.6, 0.97]);
    let text = bounds(&figure).omitted.to_string();
    assert!(text.contains("outside the axes") && text.contains("1 reference line is outside"), "{text}");
    assert!(svg(&figure, &RenderOptions::default()).contains("1 reference line is outside"), "the picture says so");
    assert!(csv(&figure).contains("1 reference line is outside"), "and the table");
}

#[test]
fn a_range_no_axis_can_have_is_as_none() {
    let mut figure = examples::scaling();
    let free = bounds(&figure);
    for range in [[0.0, 1.0], [1.0, 1.0], [f64::NAN, 1.0], [1.0, f64::INFINITY]] {
        figure.y.range = Some(range);
        assert_eq!(bounds(&figure), free, "{range:?}");
    }
    figure.y.range = Some([1.0, 0.01]);
    assert_eq!(bounds(&figure).y, [0.01, 1.0]);
}

#[test]
fn what_stands_at_a_name_stands_apart_and_beside_its_kind() {
    let figure = examples::shift();
    let slots = slots(&figure);
    let mut order: Vec<usize> = (0..4).collect();
    order.sort_by(|&a, &b| slots[a].offset.total_cmp(&slots[b].offset));
    assert_eq!(order, [0, 2, 1, 3], "published numbers beside ours of the same colour");
    for pair in order.windows(2) {
        let distance = slots[pair[1]].offset - slots[pair[0]].offset;
        assert!((distance - slots[0].width).abs() < 1e-12);
    }
    assert!(slots.iter().all(|slot| slot.offset.abs() + slot.width / 2.0 < 0.5));
    assert!(super::slots(&examples::sweep()).iter().all(|slot| *slot == Slot::default()), "numbers keep their places");
}

//! SVG and PNG: complete, readable, the same every time.

use std::collections::HashSet;

use super::super::scene::{Scene, Shape};
use super::super::{layout, text};
use super::*;

/// All text of an SVG, line after line.
fn words(document: &str) -> String {
    let tree = roxmltree::Document::parse(document).unwrap();
    let lines = tree.descendants().filter(|node| node.has_tag_name("text")).filter_map(|node| node.text());
    lines.collect::<Vec<_>>().join(" ")
}

#[test]
fn an_svg_is_xml_and_says_everything() {
    for figure in all() {
        let document = svg(&figure, &RenderOptions::default());
        let tree = roxmltree::Document::parse(&document).unwrap();
        let root = tree.root_element();
        let child = |name| root.children().find(|node| node.has_tag_name(name)).and_then(|node| node.text()).unwrap();
        assert_eq!(child("title"), figure.title);
        assert!(child("desc").contains(&figure.caption));
        let words = words(&document);
        let provenance: Vec<_> = figure.provenance.iter().map(|(key, value)| format!("{key}: {value}")).collect();
        let names = figure.series.iter().map(|series| &series.name).chain(figure.rules.iter().map(|rule| &rule.label));
        let axes = [figure.x.full_title(), figure.y.full_title()];
        let said = names.chain(&figure.x.categories).chain([&figure.title, &figure.caption]).chain(&provenance);
        for said in said.chain(&axes) {
            assert!(words.contains(said.as_str()), "{}: «{said}» is missing in {words}", figure.id);
        }
        assert_eq!(words.contains("Published numbers"), figure.series.iter().any(|series| series.faint));
    }
}

#[test]
fn an_svg_has_every_tick() {
    let sweep = svg(&examples::sweep(), &RenderOptions::default());
    let labels: Vec<String> =
        [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0].map(number).to_vec();
    let tree = roxmltree::Document::parse(&sweep).unwrap();
    let texts: HashSet<&str> =
        tree.descendants().filter(|node| node.has_tag_name("text")).filter_map(|node| node.text()).collect();
    assert!(labels.iter().all(|label| texts.contains(label.as_str())), "{texts:?}");
}

#[test]
fn hostile_names_do_not_break_an_svg() {
    let mut figure = examples::shift();
    figure.series[0].name = "<b>&\"'\u{0}\u{8}\u{ffff}</b> ]]>".into();
    figure.x.categories[1] = "</text>".into();
    figure.title = "<!-- -->".into();
    let document = svg(&figure, &RenderOptions::default());
    let words = words(&document);
    assert!(words.contains("<b>&\"'") && words.contains("</text>") && words.contains("<!-- -->"), "{words}");
}

/// The corners of all texts.
fn boxes(scene: &Scene) -> Vec<(String, [[f64; 2]; 4])> {
    let corners = |shape: &Shape| {
        let Shape::Text(line) = shape else { return None };
        let width = text::width(&line.text, line.size);
        let start = -line.anchor.share() * width;
        let (sin, cos) = line.angle.to_radians().sin_cos();
        let turn = |[x, y]: [f64; 2]| [line.at[0] + x * cos - y * sin, line.at[1] + x * sin + y * cos];
        let (up, down) = (-0.72 * line.size, 0.2 * line.size);
        let corners = [[start, up], [start + width, up], [start + width, down], [start, down]];
        Some((line.text.clone(), corners.map(turn)))
    };
    scene.shapes.iter().filter_map(corners).collect()
}

/// Returns whether two rectangles share a point: none of their sides separates them.
fn overlap(a: &[[f64; 2]; 4], b: &[[f64; 2]; 4]) -> bool {
    let sides = |of: &[[f64; 2]; 4]| [0, 1].map(|i| [of[i + 1][0] - of[i][0], of[i + 1][1] - of[i][1]]);
    let span = |of: &[[f64; 2]; 4], [x, y]: [f64; 2]| {
        let along = of.map(|corner| corner[0] * x + corner[1] * y);
        along.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], at| [low.min(*at), high.max(*at)])
    };
    let apart = |side| {
        let [a, b] = [span(a, side), span(b, side)];
        a[1] <= b[0] || b[1] <= a[0]
    };
    !sides(a).into_iter().chain(sides(b)).any(apart)
}

/// Asserts that no text is cut off and that none lies on another or, but for labels, in the plot.
pub(super) fn assert_readable(figure: &Figure, look: &RenderOptions) {
    let scene = layout::scene(figure, look);
    let texts = boxes(&scene);
    let [left, top, right, bottom] = scene.plot;
    let plot = [[left, top], [right, top], [right, bottom], [left, bottom]];
    for (i, (text, corners)) in texts.iter().enumerate() {
        let inside = |[x, y]: [f64; 2]| (0.0..=scene.size[0]).contains(&x) && (0.0..=scene.size[1]).contains(&y);
        assert!(
            corners.iter().all(|corner| inside(*corner)),
            "{look:?} {}: «{text}» is cut off: {corners:?}",
            figure.id
        );
        assert!(!overlap(corners, &plot), "{look:?} {}: «{text}» lies in the plot", figure.id);
        for (other, others) in &texts[i + 1..] {
            assert!(!overlap(corners, others), "{look:?} {}: «{text}» and «{other}» overlap", figure.id);
        }
    }
}

#[test]
fn no_text_is_cut_off_or_lies_on_another() {
    for figure in all() {
        for (width, plot_height) in [(480.0, 200.0), (640.0, 300.0), (800.0, 360.0), (1200.0, 700.0)] {
            assert_readable(&figure, &RenderOptions { width, plot_height, ..RenderOptions::default() });
        }
    }
}

#[test]
fn long_and_many_names_stay_readable() {
    let mut rng = rng(6);
    for _ in 0..200 {
        let mut figure = examples::shift();
        let mut name = |longest: usize| {
            let words = rng.random_range(1..=longest);
            (0..words).map(|_| "accuracy".get(..rng.random_range(1..=8)).unwrap()).collect::<Vec<_>>().join(" ")
        };
        figure.x.categories = (0..10).map(|_| name(9)).collect();
        figure.series.iter_mut().for_each(|series| series.name = name(12));
        figure.title = name(40);
        figure.y.title = name(20);
        figure.x.categories.extend((10..rng.random_range(11..70)).map(|i| format!("class {i}")));
        assert_readable(&figure, &RenderOptions { width: rng.random_range(480.0..1400.0), ..RenderOptions::default() });
    }
}

/// The colours of a PNG, and its size.
fn pixels(bytes: &[u8]) -> ([u32; 2], HashSet<[u8; 3]>) {
    let picture = image::load_from_memory(bytes).unwrap().to_rgb8();
    ([picture.width(), picture.height()], picture.pixels().map(|pixel| pixel.0).collect())
}

#[test]
fn a_png_has_the_size_of_the_svg_and_every_colour() {
    for figure in all() {
        for dark in [false, true] {
            let look = RenderOptions { dark, ..RenderOptions::default() };
            let document = svg(&figure, &look);
            let tree = roxmltree::Document::parse(&document).unwrap();
            let side = |name| tree.root_element().attribute(name).unwrap().parse::<u32>().unwrap();
            let (size, colours) = pixels(&png(&figure, &look, 2.0).unwrap());
            assert_eq!(size, [2 * side("width"), 2 * side("height")]);
            for series in figure.series.iter().filter(|series| !series.faint) {
                assert!(colours.contains(&colour(series.colour, dark)), "{}: {} is not there", figure.id, series.name);
            }
        }
    }
}

#[test]
fn the_same_figure_gives_the_same_bytes() {
    for figure in all() {
        let look = RenderOptions::default();
        let again = figure.clone();
        let paint = move || (svg(&again, &look), png(&again, &look, 1.5).unwrap());
        let elsewhere = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(paint);
        let here = (svg(&figure, &look), png(&figure, &look, 1.5).unwrap());
        assert!(here == elsewhere, "{}", figure.id);
    }
}

#[test]
fn a_scale_that_cannot_be_drawn_is_refused_with_a_way_out() {
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e6] {
        let message = png(&examples::sweep(), &RenderOptions::default(), scale).unwrap_err().to_string();
        assert!(message.contains("choose a scale"), "{message}");
    }
}

/// Neither has a line any length there, nor a band any width.
#[test]
fn a_line_through_one_point_is_a_dash_with_a_bar_for_its_interval() {
    let point = |x: f64, y: f64| Point::new(x, y).within(y - 0.1, y + 0.1);
    let three = [3.0, 4.0, 5.0].map(|x| point(x, 0.6 + 0.01 * x)).to_vec();
    let gap = Point::new(2.0, f64::NAN);
    for style in [Style::Line, Style::Steps] {
        let drawn = |points: Vec<Point>| {
            let series = vec![Series { name: "s".into(), style, points, band: true, ..Series::default() }];
            let scene = layout::scene(&Figure { series, ..Figure::default() }, &RenderOptions::default());
            let paths = scene.shapes.into_iter().filter_map(|shape| match shape {
                Shape::Path(path) => Some(path),
                Shape::Text(_) => None,
            });
            let (marks, others): (Vec<_>, Vec<_>) = paths.partition(|path| path.tip.is_some());
            let clipped = others.into_iter().filter(|path| path.clipped);
            let (bands, lines): (Vec<_>, Vec<_>) = clipped.partition(|path| path.closed);
            let tips: Vec<String> = marks.into_iter().filter_map(|path| path.tip).collect();
            // The bar of an interval and its two caps are lines of two corners.
            (tips, lines.iter().filter(|path| path.points.len() == 2).count(), lines.len(), bands.len())
        };
        let tip = || vec!["s: 1, 0.5 [0.4, 0.6]".to_owned()];
        assert_eq!(drawn(vec![point(1.0, 0.5)]), (tip(), 3, 3, 0), "{style:?}");
        assert_eq!(drawn(three.clone()), (vec![], 0, 1, 1), "{style:?}");
        let both = [vec![point(1.0, 0.5), gap.clone()], three.clone()].concat();
        assert_eq!(drawn(both), (tip(), 3, 4, 1), "{style:?}");
        // A point between others that has the only interval.
        let mut between = three.iter().map(|point| Point::new(point.x, point.y)).collect::<Vec<_>>();
        between[1] = three[1].clone();
        assert_eq!(drawn(between), (vec![], 3, 4, 0), "{style:?}");
    }
}

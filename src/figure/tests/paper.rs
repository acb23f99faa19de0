//! Pictures for paper: sizes, narrow legends, PDF.

use std::collections::HashMap;
use std::io::Read;

use super::super::layout;
use super::super::scene::Shape;
use super::*;

#[test]
fn a_picture_for_paper_has_the_width_and_the_letters_that_were_asked_for() {
    for (mm, font) in [(85.0, 8.0), (85.0, 10.0), (175.0, 8.0), (120.0, 11.0)] {
        let look = RenderOptions { bare: true, ..RenderOptions::on_paper(mm, font) };
        let points = look.paper.unwrap();
        let scene = layout::scene(&examples::scaling(), &look);
        // A pixel is lost by rounding up.
        assert!((scene.size[0] * points - mm * 72.0 / 25.4).abs() <= points, "{mm} mm, {font} pt");
        let sizes: Vec<f64> =
            scene.shapes.iter().filter_map(|s| if let Shape::Text(t) = s { Some(t.size) } else { None }).collect();
        let labels = sizes.iter().filter(|size| (*size * points - font).abs() < 1e-9).count();
        assert!(labels > 4, "labels are written in {font} pt: {sizes:?}");
        let document = svg(&examples::scaling(), &look);
        let width = format!("width=\"{}pt\"", (100.0 * scene.size[0] * points).round() / 100.0);
        assert!(document.contains(&width), "{width} is not in {}", &document[..300]);
    }
}

#[test]
fn a_bare_picture_keeps_its_caption_and_provenance_in_its_description() {
    for figure in all() {
        let look = RenderOptions { bare: true, ..RenderOptions::default() };
        let scene = layout::scene(&figure, &look);
        let written = |text: &str| {
            scene.shapes.iter().any(
                |s| matches!(s, Shape::Text(line) if line.text.chars().count() > 30 && text.starts_with(&line.text)),
            )
        };
        assert!(!written(&figure.title) && !written(&figure.caption));
        assert_eq!(scene.title, figure.title);
        assert!(scene.description.contains(&figure.caption));
        assert!(figure.provenance.iter().all(|(name, value)| scene.description.contains(&format!("{name}: {value}"))));
    }
}

#[test]
fn a_legend_leaves_narrow_plots_their_width() {
    for figure in all() {
        for width in [340.0, 400.0, 470.0, 900.0] {
            let look = RenderOptions { width, plot_height: 220.0, ..RenderOptions::default() };
            painted::assert_readable(&figure, &look);
            let [left, _, right, _] = layout::scene(&figure, &look).plot;
            assert!(width > 460.0 || right - left > 0.5 * width, "{}: {left} to {right} of {width}", figure.id);
        }
    }
}

#[test]
fn series_beside_their_place_keep_their_numbers() {
    let mut figure = examples::scaling();
    let before = csv(&figure);
    figure.series[1].aside = 0.05;
    assert_eq!(csv(&figure), before);
    assert_eq!(slots(&figure)[1].offset, 0.05);
    let own = [[1, 2, 3], [4, 5, 6]];
    figure.series[0].own = Some(own);
    for (dark, rgb) in [(false, "#010203"), (true, "#040506")] {
        assert!(svg(&figure, &RenderOptions { dark, ..RenderOptions::default() }).contains(rgb));
    }
}

/// The objects of a PDF by their places in the table at its end, and what its page draws.
fn parsed(bytes: &[u8]) -> (HashMap<usize, String>, String) {
    let text = |range: std::ops::Range<usize>| String::from_utf8_lossy(&bytes[range]).into_owned();
    let find = |what: &str, from: usize| {
        from + bytes[from..].windows(what.len()).position(|window| window == what.as_bytes()).expect(what)
    };
    let tail = text(bytes.len().saturating_sub(80)..bytes.len());
    let table: usize = tail.split("startxref\n").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
    let lines = text(table..bytes.len());
    let places =
        lines.lines().filter(|line| line.ends_with(" 00000 n")).map(|line| line[..10].parse::<usize>().unwrap());
    let mut objects = HashMap::new();
    for (i, place) in places.enumerate() {
        let head = format!("{} 0 obj\n", i + 1);
        assert_eq!(text(place..place + head.len()), head, "the table leads to object {}", i + 1);
        objects.insert(i + 1, text(place + head.len()..find("endobj", place)));
    }
    let begin = find("stream\n", 0) + 7;
    let mut contents = String::new();
    flate2::read::ZlibDecoder::new(&bytes[begin..find("\nendstream", begin)]).read_to_string(&mut contents).unwrap();
    (objects, contents)
}

#[test]
fn a_pdf_is_whole_and_draws_what_the_svg_draws() {
    for figure in all() {
        let look = RenderOptions { bare: true, ..RenderOptions::on_paper(85.0, 8.0) };
        let bytes = pdf(&figure, &look).unwrap();
        assert_eq!(bytes, pdf(&figure, &look).unwrap(), "the same bytes every time");
        let (objects, contents) = parsed(&bytes);
        let scene = layout::scene(&figure, &look);
        let media = objects[&3].split("/MediaBox [").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
        let media: Vec<f64> = media.split_whitespace().map(|side| side.parse().unwrap()).collect();
        let sides = scene.size.map(|side| side * look.paper.unwrap());
        let expected = [0.0, 0.0, sides[0], sides[1]];
        assert!(
            media.len() == 4 && media.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-3),
            "{media:?} {sides:?}"
        );
        // Every state that is used is defined, and what is opened is closed.
        let tokens: Vec<&str> = contents.split_whitespace().collect();
        let states = tokens.windows(2).filter(|pair| pair[1] == "gs").map(|pair| pair[0]);
        states.for_each(|state| assert!(objects[&3].contains(&format!("{state} <<")), "{state}"));
        let count = |what: &str| tokens.iter().filter(|token| **token == what).count();
        assert_eq!(count("q"), count("Q"));
        // Every line of text and every path is painted, the ground too.
        let texts =
            scene.shapes.iter().filter(|s| matches!(s, Shape::Text(line) if !line.text.trim().is_empty())).count();
        let paths = scene.shapes.iter().filter(|s| matches!(s, Shape::Path(path) if !path.points.is_empty())).count();
        let painted: usize = ["f", "B", "b", "s", "S", "n"].iter().map(|paint| count(paint)).sum();
        // The `n` after each clip paints nothing.
        assert_eq!(painted - count("W"), 1 + texts + paths);
        let title: String = figure.title.encode_utf16().map(|unit| format!("{unit:04X}")).collect();
        assert!(objects[&5].contains(&title) || objects[&5].contains(&format!("/Title ({})", figure.title)));
        assert!(!contents.contains("NaN") && !contents.contains("inf"));
    }
}

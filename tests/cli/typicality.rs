//! Typicality: of samples as often unusual as its p-value says, of noise far outside; in `posterior` and in a judgement.

use std::path::Path;

use bayescope::data::{Column, ImageShape, Stored, write_png, write_table};
use bayescope::measure::typicality::NOT_OF_THIS_WORLD;
use serde_json::Value;

use crate::common::tiny;
use crate::run::{fail, json, succeed, text};

#[test]
fn p_values_of_a_worlds_own_samples_are_uniform() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let samples = place.path().join("s.npz");
    succeed(&["sample", text(&oracle), "--n", "400", "--seed", "9", "--out", text(&samples), "--device", "cpu"]);
    let found = json(&["posterior", text(&oracle), text(&samples), "--typicality", "999", "--device", "cpu", "--json"]);
    let p: Vec<f64> =
        found["images"].as_array().unwrap().iter().map(|i| i["typicality"]["p_value"].as_f64().unwrap()).collect();
    assert_eq!((p.len(), found["typicality"]["samples"].as_u64()), (400, Some(999)));
    // Kolmogorov and Smirnov: 400 against 999 samples; chance passes 1.95 about once in a thousand times.
    let mut sorted = p.clone();
    sorted.sort_by(f64::total_cmp);
    let off = |(i, p): (usize, &f64)| (p - i as f64 / 400.0).abs().max((p - (i + 1) as f64 / 400.0).abs());
    let distance = sorted.iter().enumerate().map(off).fold(0.0, f64::max);
    let size = (400.0f64 * 999.0 / 1399.0).sqrt();
    assert!(distance * size < 1.95, "distance {distance}");
    assert_eq!(found["typicality"]["far_outside"].as_u64(), Some(0));
}

#[test]
fn noise_gets_the_words_and_samples_can_be_left_out() {
    let place = tempfile::tempdir().unwrap();
    let noise = place.path().join("noise.png");
    let pixels: Vec<u8> = (0..1024u32).map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    write_png(&noise, ImageShape { channels: 1, height: 32, width: 32 }, &pixels).unwrap();
    let ask = |more: &[&'static str]| -> Vec<&str> {
        [&["posterior", "mnist", text(&noise), "--device", "cpu"], more].concat()
    };
    let found = json(&ask(&["--json"]));
    let place = &found["images"][0]["typicality"];
    assert_eq!((place["band"].as_str(), place["p_value"].as_f64()), (Some("far-outside"), Some(0.005)));
    assert!(succeed(&ask(&[])).contains(NOT_OF_THIS_WORLD));
    let without = json(&ask(&["--json", "--typicality", "0"]));
    assert!(without["typicality"].is_null() && without["images"][0]["typicality"].is_null());
    assert_eq!(without["images"][0]["posterior"], found["images"][0]["posterior"]);
    assert!(fail(1, &ask(&["--typicality", "5"])).contains("at least 39"));
}

#[test]
fn a_judgement_holds_its_images_against_the_other_split() {
    let place = tempfile::tempdir().unwrap();
    let (oracle, data) = (tiny::gaussian_file(place.path()), place.path().join("data"));
    let export = |train: &str, data: &Path| {
        let sizes = ["--train", train, "--test", "200", "--device", "cpu"];
        succeed(&[&["export", text(&oracle), "--out", text(data)], &sizes[..]].concat());
    };
    export("500", &data);
    let file = place.path().join("even.npz");
    let column = [Column { name: "logits", stored: Stored::F64, shape: vec![2] }];
    write_table(&file, 200, &column, &mut |_, rows| Ok(vec![0.0; 2 * rows.len()])).unwrap();
    let judge = |data: &Path| -> Value {
        json(&["evaluate", text(data), "--predictions", text(&file), "--kind", "logits", "--json"])
    };
    let found = judge(&data);
    let census = &found["typicality"];
    let count = |key: &str| census[key].as_u64().unwrap();
    assert_eq!((count("images"), count("samples"), count("far_outside")), (200, 399, 0), "{census}");
    assert!(count("typical") >= 165, "{census}");
    // Too few on the other side say nothing.
    let few = place.path().join("few");
    export("20", &few);
    assert!(judge(&few)["typicality"].is_null());
}

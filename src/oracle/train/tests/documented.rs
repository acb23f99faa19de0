//! Whether docs/oracle-spec.md has every key of a spec, with the default that holds without it.

use std::collections::BTreeMap;

use super::*;
use crate::data::fields;
use crate::flow::weights::Storage;
use crate::units::Seed;

/// Keys that have to be given.
const NEEDED: [&str; 2] = ["name", "data.path"];

/// Rows of the tables: key and default, the latter without its code span.
fn rows(page: &str) -> BTreeMap<String, String> {
    let cells = |line: &str| -> Option<(String, String)> {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let key = cells.next()?.trim_end_matches('`');
        Some((key.to_owned(), cells.nth(1)?.trim_matches('`').to_owned()))
    };
    page.lines().filter_map(cells).collect()
}

/// A spec that says all it can; a field that is new is missing here.
fn whole() -> TrainSpec {
    let gaussian = Preprocessing::Gaussian { std: 0.05 };
    TrainSpec {
        name: "x".into(),
        storage: Storage::F16,
        data: DataSpec {
            path: "d".into(),
            description: Some("x".into()),
            notice: Some("x".into()),
            pad_to: 32,
            resize: Some(32),
            held_out: 1,
            shift: 1,
            mirror: true,
            turn: true,
            classes: vec!["x".into()],
            limit: Some(1),
            bootstrap: Some(Seed(1)),
            split: Some(Seed(1)),
        },
        model: ModelSpec { pixels: gaussian, ..ModelSpec::default() },
        tarflow: Some(TarFlowSpec { pixels: gaussian, shared_map: true, ..TarFlowSpec::default() }),
        training: OptimSpec::default(),
    }
}

#[test]
fn every_key_of_a_spec_is_documented_with_its_default() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/oracle-spec.md");
    let documented = rows(&std::fs::read_to_string(page).unwrap());
    let keys: Vec<String> = fields(&whole(), &[]).into_iter().map(|(key, _)| key).collect();
    assert_eq!(documented.keys().cloned().collect::<Vec<_>>(), keys);
    let least: TrainSpec = toml::from_str("name = 'x'\ndata.path = 'd'\n[tarflow]").unwrap();
    let (mut differ, mut held) = (vec![], 0);
    for (key, default) in fields(&least, &NEEDED).into_iter().filter(|(_, default)| default != "null") {
        held += 1;
        // 32-bit numbers have more digits here.
        let numbers = [&default, &documented[&key]].map(|text| text.parse::<f64>().ok());
        let close = matches!(numbers, [Some(a), Some(b)] if (a - b).abs() <= 1e-6 * a.abs());
        if documented[&key] != default && !close {
            differ.push((key, default));
        }
    }
    assert!(differ.is_empty() && held > 30, "{held}; the defaults are {differ:?}");
}

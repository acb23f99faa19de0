//! CSV and JSON.

use super::*;

#[test]
fn a_table_reads_back_to_the_same_bits() {
    let mut rng = rng(5);
    let names = ["plain", "with, comma", "with \"quotes\"", "two\nlines", "# not a comment", ""];
    let mut figure = examples::sweep();
    figure.series.clear();
    for name in names {
        let mut end = || (any_number(&mut rng), any_number(&mut rng));
        let points = (0..200).map(|_| {
            let ((x, y), (low, high)) = (end(), end());
            Point { x, y, low: Some(low), high: Some(high), label: Some(name.to_owned()) }
        });
        figure.series.push(Series { name: name.to_owned(), points: points.collect(), ..Series::default() });
    }
    let text = csv(&figure);
    let table = &text[text.find("series,x,y").unwrap()..];
    let mut reader = ::csv::Reader::from_reader(table.as_bytes());
    let mut records = reader.records();
    let same = |text: &str, value: f64| text.parse::<f64>().unwrap().to_bits() == value.to_bits() || value.is_nan();
    for series in &figure.series {
        for point in &series.points {
            let record = records.next().unwrap().unwrap();
            assert_eq!((&record[0], &record[5]), (series.name.as_str(), point.label.as_deref().unwrap()));
            let numbers = [point.x, point.y, point.low.unwrap(), point.high.unwrap()];
            assert!(numbers.iter().zip(1..).all(|(value, i)| same(&record[i], *value)), "{record:?} {point:?}");
        }
    }
    assert!(records.next().is_none());
}

#[test]
fn a_table_says_where_it_comes_from() {
    let mut figure = examples::shift();
    figure.caption.push_str("\nsecond\nline");
    let text = csv(&figure);
    let (comments, table) = text.split_at(text.find("series,x,y").unwrap());
    assert!(comments.lines().all(|line| line.starts_with("# ")), "{comments}");
    for (key, value) in &figure.provenance {
        assert!(comments.contains(&format!("# {key}: {value}\n")));
    }
    assert!(comments.contains(&format!("# title: {}\n", figure.title)) && comments.contains("second line"));
    assert!(comments.contains("# line: no change, y = 0\n") && comments.contains("# y: Accuracy drop [pp]\n"));
    assert!(table.contains("ResNet-50,strong imbalance,"), "a name, not its place: {table}");
}

#[test]
fn json_reads_back_and_keeps_lost_numbers_lost() {
    for figure in all() {
        let text = serde_json::to_string(&figure).unwrap();
        let mut back: Figure = serde_json::from_str(&text).unwrap();
        for (was, is) in figure.series.iter().zip(&mut back.series) {
            for (was, is) in was.points.iter().zip(&mut is.points) {
                assert_eq!((was.x.is_nan(), was.y.is_nan()), (is.x.is_nan(), is.y.is_nan()));
            }
        }
        // NaN differs from itself: one without is compared.
        let lost =
            |figure: &Figure| figure.series.iter().flat_map(|series| &series.points).any(|point| point.y.is_nan());
        assert!(lost(&figure) || back == figure, "{}", figure.id);
    }
    let short: Figure =
        serde_json::from_str(r#"{"id":"a","series":[{"name":"b","points":[{"x":1,"y":null}]}]}"#).unwrap();
    assert!(short.series[0].points[0].y.is_nan() && short.series[0].style == Style::Line);
}

/// A value with a line break once began a line of numbers that no reader understands.
#[test]
fn what_a_page_says_above_its_tables_stays_comments() {
    let table = Table::of(&[1]).words("n", ToString::to_string).named("counts", "Counts", "How many.");
    let provenance = vec![("notes".to_owned(), "first\nsecond, line".to_owned())];
    let page =
        Page { name: "page.md".into(), head: "# Page\n".into(), figures: Vec::new(), tables: vec![table], provenance };
    let (_, text) = page.files().into_iter().find(|(name, _)| name == "counts.csv").unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with("# notes: first second, line\n"), "{text}");
    assert!(text.lines().filter(|line| !line.starts_with("# ")).all(|line| ["n", "1"].contains(&line)), "{text}");
}

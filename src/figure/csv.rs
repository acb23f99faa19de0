//! Figures as CSV.

use super::{Axis, Figure, Rule, Scale, Way, bounds};

/// The figure as a table: lines `# key: value` with everything around the picture, then one line a point. Numbers are
/// the shortest that read back to the same f64; a place on an axis of names is written as its name.
pub fn csv(figure: &Figure) -> String {
    let mut text = String::new();
    let mut comment = |key: &str, value: &str| {
        let clean = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
        text.push_str(&format!("# {}: {}\n", clean(key), clean(value)));
    };
    comment("title", &figure.title);
    comment("caption", &figure.caption);
    for (key, value) in &figure.provenance {
        comment(key, value);
    }
    comment("x", &described(&figure.x));
    comment("y", &described(&figure.y));
    for rule in &figure.rules {
        comment("line", &line(rule));
    }
    let omitted = bounds(figure).omitted.to_string();
    if !omitted.is_empty() {
        comment("picture", &omitted);
    }
    text + &table(figure)
}

fn table(figure: &Figure) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let end = |end: Option<f64>| end.map_or_else(String::new, exact);
    // Writing to memory does not fail, and all records have six fields.
    let _ = writer.write_record(["series", "x", "y", "low", "high", "label"]);
    for series in &figure.series {
        for point in &series.points {
            let label = point.label.as_deref().unwrap_or_default();
            let x = name(&figure.x, point.x).map_or_else(|| exact(point.x), ToOwned::to_owned);
            let y = name(&figure.y, point.y).map_or_else(|| exact(point.y), ToOwned::to_owned);
            let record = [&series.name, &x, &y, &end(point.low), &end(point.high), label];
            let _ = writer.write_record(record);
        }
    }
    writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// The name that stands at `value`.
pub(super) fn name(axis: &Axis, value: f64) -> Option<&str> {
    let whole = value >= 0.0 && value.fract() == 0.0;
    whole.then(|| axis.categories.get(value as usize)).flatten().map(String::as_str)
}

fn described(axis: &Axis) -> String {
    let scale = match axis.shown_scale() {
        Scale::Linear => "",
        Scale::Log10 => " (log axis)",
    };
    axis.full_title() + scale
}

fn line(rule: &Rule) -> String {
    let axis = match rule.way {
        Way::Horizontal => 'y',
        Way::Vertical => 'x',
    };
    let ends = rule.low.zip(rule.high).map(|(low, high)| format!(" [{}, {}]", exact(low), exact(high)));
    format!("{}, {axis} = {}{}", rule.label, exact(rule.at), ends.unwrap_or_default())
}

/// The shortest digits that read back to the same number.
fn exact(value: f64) -> String {
    let text = format!("{value:?}");
    text.strip_suffix(".0").map(ToOwned::to_owned).unwrap_or(text)
}

//! Figures as CSV.

use super::{Axis, Cells, Figure, Grid, Point, Rule, Scale, Series, Way, bounds};

/// The figure as CSV: lines `# key: value`, then one line a point, or a square of a grid. Numbers are the shortest that
/// read back to the same f64; categories are written by name.
pub fn csv(figure: &Figure) -> String {
    let mut text = String::new();
    let mut comment = |key: &str, value: &str| text.push_str(&comment(&format!("{key}: {value}")));
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
    text + &if figure.grids.is_empty() { table(figure) } else { squares(figure) }
}

/// A line that is no record, whatever is in it.
pub fn comment(text: &str) -> String {
    format!("# {}\n", text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn table(figure: &Figure) -> String {
    let end = |end: Option<f64>| end.map_or_else(String::new, exact);
    let place = |axis: &Axis, at: f64| name(axis, at).map_or_else(|| exact(at), ToOwned::to_owned);
    let points = figure.series.iter().flat_map(|series| series.points.iter().map(move |point| (series, point)));
    let record = |(series, point): (&Series, &Point)| {
        let (x, y) = (place(&figure.x, point.x), place(&figure.y, point.y));
        [series.name.clone(), x, y, end(point.low), end(point.high), point.label.clone().unwrap_or_default()]
    };
    let head = ["series", "x", "y", "low", "high", "label"].map(ToOwned::to_owned);
    records(std::iter::once(head).chain(points.map(record)))
}

/// The squares of all grids as records.
fn squares(figure: &Figure) -> String {
    let name = |i: usize| figure.x.categories.get(i).cloned().unwrap_or_default();
    let record = |(i, grid): (usize, &Grid), square: usize| {
        let value = match &grid.cells {
            Cells::Pixels(pixels) => pixels.get(square).map(|[r, g, b]| format!("#{r:02x}{g:02x}{b:02x}")),
            Cells::Numbers { values, .. } => values.get(square).map(ToString::to_string),
        };
        let place = [square / grid.columns.max(1) + 1, square % grid.columns.max(1) + 1].map(|at| at.to_string());
        let [row, column] = place;
        [name(i), row, column, value.unwrap_or_default()]
    };
    let head = ["grid", "row", "column", "value"].map(ToOwned::to_owned);
    let grids = figure.grids.iter().enumerate();
    let squares = grids.flat_map(|(i, grid)| (0..grid.len()).map(move |square| record((i, grid), square)));
    records(std::iter::once(head).chain(squares))
}

/// Records as comma-separated values, a line each; fields are in quotes where they need them.
pub fn records(records: impl IntoIterator<Item: IntoIterator<Item: AsRef<[u8]>>>) -> String {
    let mut writer = ::csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    // Writing to memory does not fail, and what was text stays text.
    for record in records {
        let _ = writer.write_record(record);
    }
    writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// Records in the making: the things they are about, and the fields of each.
#[derive(Debug)]
pub struct Records<R> {
    things: Vec<R>,
    head: Vec<String>,
    records: Vec<Vec<String>>,
}

impl<R: Copy> Records<R> {
    /// Begins with a record, still without fields, for each of `things`.
    pub fn of(things: impl IntoIterator<Item = R>) -> Self {
        let things: Vec<R> = things.into_iter().collect();
        Self { head: Vec::new(), records: vec![Vec::new(); things.len()], things }
    }

    /// Adds a field by its name. Floats are the shortest that read back to the same number.
    #[must_use]
    pub fn field<T: ToString>(mut self, name: &str, holds: impl Fn(R) -> T) -> Self {
        self.head.push(name.to_owned());
        for (record, thing) in self.records.iter_mut().zip(&self.things) {
            record.push(holds(*thing).to_string());
        }
        self
    }

    /// A line of names, then a line a record.
    pub fn text(self) -> String {
        records(std::iter::once(self.head).chain(self.records))
    }
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

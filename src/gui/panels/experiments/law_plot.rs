//! Loss against N, both logarithmic: cross-entropy, its aleatoric floor, its epistemic part with
//! the fitted law and its band, and the law fitted without the largest N with its forecast there.

use std::path::{Path, PathBuf};

use eframe::egui::{self, Ui};

use crate::experiment::{Cell, CellResult, Law};
use crate::figure::{Axis, Figure, Point, Rule, Series as Drawn, Style, Way};
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::glossary;
use crate::gui::plot::{About, Board};
use crate::measure::{Estimate, HoldOut, Measured};
use crate::worker::runs::LawCurve;

/// Marks of one N but of different classifiers stand so far apart, log₁₀: none hides another.
const ASIDE: f64 = 0.01;
/// What the plot is called.
const NAME: &str = "Loss over the number of training images";

/// Which parts are drawn.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    /// Cross-entropy.
    pub total: bool,
    /// Its floor.
    pub aleatoric: bool,
    /// KL and its law.
    pub epistemic: bool,
    /// The law of KL fitted without the largest N, with its forecast.
    pub held_out: bool,
}

impl Default for Shown {
    fn default() -> Self {
        Self { total: true, aleatoric: true, epistemic: true, held_out: true }
    }
}

impl Shown {
    /// Check boxes for the parts, the key of the plot. `held_out`: whether a law was tested by its
    /// largest N.
    pub fn choose(&mut self, ui: &mut Ui, held_out: bool) {
        let parts = [
            (&mut self.total, "cross-entropy L (squares)", "cross-entropy"),
            (&mut self.aleatoric, "aleatoric A (dashed)", "aleatoric"),
            (&mut self.epistemic, "epistemic KL (circles, law with 95 % band)", "epistemic"),
        ];
        for (shown, text, word) in parts {
            glossary::explain(ui.checkbox(shown, text), word);
        }
        if held_out {
            let text = "law without the largest N (dashed, diamond: its forecast with 95 % interval)";
            let about = "The law of KL fitted to all but the largest N, drawn on to it. Where the circles there lie outside the \
                         interval of the diamond, the law does not hold beyond what it was fitted to. Shown with KL.";
            let key = ui.add_enabled(self.epistemic, egui::Checkbox::new(&mut self.held_out, text));
            key.on_hover_text(about).on_disabled_hover_text(about);
        }
    }

    /// Whether the laws without the largest N are drawn.
    pub fn forecasts(self) -> bool {
        self.epistemic && self.held_out
    }
}

/// The cells of one architecture of one run.
pub struct Series<'a> {
    /// Folder of the run.
    pub folder: &'a Path,
    /// What it is called.
    pub name: String,
    /// Its place in the palette.
    pub colour: usize,
    /// Its law.
    pub law: &'a Law,
    /// The law, drawn.
    pub curve: Option<&'a LawCurve>,
    /// Its finished cells.
    pub cells: Vec<&'a CellResult>,
}

/// A number and its 95 % interval.
pub fn bracketed(Estimate { value, interval }: Estimate) -> String {
    let [value, low, high] = [value, interval.low, interval.high].map(format::sig4);
    format!("{value} [{low}, {high}]")
}

/// The figure, and of each of its series the cells of its marks.
struct Picture<'a> {
    figure: Figure,
    cells: Vec<Vec<(&'a Path, &'a CellResult)>>,
}

impl<'a> Picture<'a> {
    fn of(
        series: &[Series<'a>],
        floors: &[(String, Estimate)],
        shown: Shown,
        provenance: Vec<(String, String)>,
    ) -> Self {
        let mut picture = Self { figure: Figure::default(), cells: Vec::new() };
        // Bands lie under all marks.
        series.iter().filter(|_| shown.epistemic).for_each(|one| picture.law(one));
        for (i, one) in series.iter().enumerate() {
            // Between the marks of this classifier and those of the next.
            let aside = ASIDE * (i as f64 - (series.len() - 1) as f64 / 2.0);
            one.law.hold_out.iter().filter(|_| shown.forecasts()).for_each(|held| picture.held_out(one, held, aside));
            if shown.epistemic {
                picture.marks(one, ("KL", |m| m.epistemic), aside);
            }
            if shown.total {
                picture.marks(one, ("L", |m| m.cross_entropy), aside);
            }
        }
        let floor = |(of, floor): &(String, Estimate)| Rule {
            way: Way::Horizontal,
            at: floor.value,
            low: Some(floor.interval.low),
            high: Some(floor.interval.high),
            label: format!("aleatoric A{of}, mean over the test images"),
        };
        let rules = floors.iter().filter(|(_, floor)| shown.aleatoric && floor.value > 0.0).map(floor).collect();
        let series = std::mem::take(&mut picture.figure.series);
        picture.figure = Figure {
            id: "scaling".into(),
            title: NAME.into(),
            caption: "Cross-entropy L (hollow), its aleatoric floor A and its epistemic part KL, means over the test images with 95 % \
                      intervals; lines: the law fitted to KL, with its 95 % band, and dashed the law fitted without the largest N, \
                      with its forecast there."
                .into(),
            provenance,
            x: Axis::log10("training images N"),
            y: Axis::log10("loss").in_unit("nats per image"),
            series,
            rules,
            ..Figure::default()
        };
        picture
    }

    fn add(&mut self, drawn: Drawn, cells: Vec<(&'a Path, &'a CellResult)>) {
        self.figure.series.push(drawn);
        self.cells.push(cells);
    }

    fn law(&mut self, one: &Series<'a>) {
        let Some(curve) = one.curve else { return };
        let points = curve.points.iter().map(|[n, kl, low, high]| Point::new(*n, *kl).within(*low, *high)).collect();
        let name = format!("{}, law of KL", one.name);
        self.add(Drawn { name, colour: one.colour, points, band: true, ..Drawn::default() }, Vec::new());
    }

    /// The law fitted without the largest N, on to it, and its forecast there.
    fn held_out(&mut self, one: &Series<'a>, held: &HoldOut, aside: f64) {
        let course = one.curve.iter().flat_map(|curve| &curve.without_largest);
        let points = course.map(|[n, kl]| Point::new(*n, *kl)).collect();
        let name = format!("{}, law without the largest N", one.name);
        let line = Drawn { name, colour: one.colour, points, dashed: true, ..Drawn::default() };
        let Estimate { value, interval } = held.forecast;
        let verdict = match held.holds {
            true if held.is_too_uncertain() => "inside the interval of a forecast that is too uncertain to test",
            true => "inside the interval of the forecast",
            false => "outside the interval of the forecast",
        };
        let words = format!("{} came, {verdict}", bracketed(held.came));
        let forecast = Point { label: Some(words), ..Point::new(held.n, value).within(interval.low, interval.high) };
        let mark = Drawn {
            name: format!("{}, forecast", one.name),
            style: Style::Points,
            points: vec![forecast],
            aside: aside + 0.5 * ASIDE,
            ..line.clone()
        };
        self.add(line, Vec::new());
        self.add(mark, Vec::new());
    }

    /// The values of one part of one classifier.
    fn marks(&mut self, one: &Series<'a>, (part, of): (&str, fn(&Measured) -> Estimate), aside: f64) {
        let point = |cell: &&CellResult| {
            let Cell { train_size, seed, .. } = cell.cell;
            let Estimate { value, interval } = of(&cell.measured);
            let words = format!("seed {seed}. Click for its worst images");
            Point { label: Some(words), ..Point::new(train_size as f64, value).within(interval.low, interval.high) }
        };
        let drawn = Drawn {
            name: format!("{}, {part}", one.name),
            style: Style::Points,
            colour: one.colour,
            points: one.cells.iter().map(point).collect(),
            dashed: part == "L",
            aside,
            ..Drawn::default()
        };
        self.add(drawn, one.cells.iter().map(|cell| (one.folder, *cell)).collect());
    }
}

/// What the plot is drawn from.
pub struct Drawing<'a, 'b> {
    /// The classifiers.
    pub series: &'b [Series<'a>],
    /// The aleatoric part of the test images of each run, by its name.
    pub floors: &'b [(String, Estimate)],
    /// Which parts are drawn.
    pub shown: Shown,
    /// Where the numbers come from.
    pub provenance: Vec<(String, String)>,
    /// The numbers of its table.
    pub numbers: &'b dyn Fn() -> String,
}

/// The plot; the run and the cell of a point that was clicked.
pub fn show(ui: &mut Ui, cx: &mut Cx, drawing: Drawing<'_, '_>, board: &mut Board) -> Option<(PathBuf, String)> {
    let Drawing { series, floors, shown, provenance, numbers } = drawing;
    let Picture { figure, cells } = Picture::of(series, floors, shown, provenance);
    let places =
        cells.iter().enumerate().flat_map(|(i, of)| of.iter().enumerate().map(move |(j, cell)| ([i, j], cell)));
    let wanted = cx.view.cells.cursor();
    let chosen: Vec<[usize; 2]> =
        places.filter(|(_, (_, cell))| Some(cell.id.as_str()) == wanted).map(|(place, _)| place).collect();
    let about = About {
        name: Some(NAME),
        chosen: &chosen,
        clicks: true,
        numbers: Some(("scaling law", "scaling.csv", numbers)),
        ..About::default()
    };
    let [series, point] = board.show(ui, cx, &figure, &about).mark?;
    let (folder, cell) = cells.get(series)?.get(point)?;
    Some((folder.to_path_buf(), cell.id.clone()))
}

//! Saving and copying the figure of a plot, in the look of a paper.

use std::path::{Path, PathBuf};

use eframe::egui::{self, ColorImage, DragValue, Ui};

use super::app::App;
use super::background::{self, BackgroundTask, Purpose};
use super::prefs::{FONTS, OnPaper, WIDTHS};
use super::prompt::Prompt;
use super::runs::Done;
use super::session::log::Level;
use crate::data::write_atomically;
use crate::figure::{Figure, Pixels, pixels, thin};
use crate::provenance::Made;
use crate::run::Format;

/// Widths that papers have, millimetres.
const COLUMNS: [(&str, f64); 3] = [("one column", 85.0), ("two columns", 175.0), ("slide", 250.0)];
/// Dots an inch of a copied picture.
const DOTS: f64 = 220.0;

/// The rows of the question where to save a figure: its format, which the ending of the path says, and its look.
pub fn rows(ui: &mut Ui, path: &mut String, look: &mut OnPaper) {
    let asked = Format::of(Path::new(path.trim()));
    ui.horizontal_wrapped(|ui| {
        ui.label("Format");
        for format in Format::ALL {
            let (name, about) = words(format);
            if ui.selectable_label(asked == Some(format), name).on_hover_text(about).clicked() {
                *path = Path::new(path.trim()).with_extension(format.extension()).display().to_string();
            }
        }
    });
    ui.add_enabled_ui(asked != Some(Format::Csv), |ui| {
        ui.horizontal_wrapped(|ui| {
            let label = ui.label("Width");
            let width = DragValue::new(&mut look.width).range(WIDTHS).speed(1.0).max_decimals(1).suffix(" mm");
            ui.add(width.update_while_editing(false)).labelled_by(label.id);
            for (name, width) in COLUMNS {
                let about = format!("{width} mm");
                if ui.selectable_label(look.width == width, name).on_hover_text(about).clicked() {
                    look.width = width;
                }
            }
        });
        ui.horizontal_wrapped(|ui| {
            let label = ui.label("Font size");
            let font = DragValue::new(&mut look.font).range(FONTS).speed(0.1).max_decimals(1).suffix(" pt");
            let about = "Size of the labels; titles, lines and marks are larger and smaller with it";
            ui.add(font.update_while_editing(false)).labelled_by(label.id).on_hover_text(about);
            ui.checkbox(&mut look.captioned, "title and caption")
                .on_hover_text("In the picture, with where the numbers come from; else in its properties alone");
            ui.checkbox(&mut look.dark, "dark ground").on_hover_text("For slides; papers are light");
        });
    });
}

fn words(format: Format) -> (&'static str, &'static str) {
    match format {
        Format::Svg => ("SVG", "A drawing whose text is text"),
        Format::Pdf => ("PDF", "A page of the size of the figure, for LaTeX; letters are outlines"),
        Format::Png => ("PNG", "Pixels, 300 an inch"),
        Format::Csv => ("CSV", "Every point with its interval, comma-separated"),
    }
}

impl App {
    /// Asks where a figure goes.
    pub(super) fn ask_for_figure(&mut self, figure: Box<Figure>) {
        self.prompt = Some(Prompt::named(Purpose::SaveFigure, format!("{}.svg", stem(&figure))));
        self.runs.place.clear();
        self.runs.figure = Some(figure);
    }

    /// Saves the figure that waits for a path.
    pub(super) fn save_figure(&mut self, ctx: &egui::Context, path: PathBuf) {
        let Some(figure) = self.runs.figure.take() else { return };
        let Some(format) = Format::of(&path) else {
            let why = format!("{}: the name of a figure ends in .svg, .pdf, .png or .csv", path.display());
            return self.session.notify(Level::Error, why);
        };
        let look = self.prefs.on_paper.look();
        let made = Made::of_lines(format!("figure: {}", figure.title), Some(&path), &figure.provenance);
        self.saving.push(background::save(ctx, path, made, move |path| {
            let bytes = format.encode(&figure, &look)?;
            write_atomically(path, |file| file.write_all(&bytes))
        }));
    }

    /// Puts a picture of a figure on the clipboard once it is drawn.
    pub(super) fn copy_picture(&mut self, ctx: &egui::Context, figure: Box<Figure>) {
        let look = self.prefs.on_paper.look();
        let scale = (look.paper.unwrap_or(1.0) * DOTS / 72.0) as f32;
        let work = move || {
            let seen = thin(&figure, figure.x.range, (2.0 * look.width) as usize);
            let drawn = pixels(&seen, &look, scale).map_err(|error| error.to_string())?;
            let Pixels { width, height, rgb } = drawn;
            Ok(Done::Picture(ColorImage::from_rgb([width as usize, height as usize], &rgb)))
        };
        self.runs.background.push(BackgroundTask::start(ctx, "draw a figure", work));
    }
}

/// The name of a figure's file: its ID, or what its title makes of one.
fn stem(figure: &Figure) -> String {
    let plain = |text: &str| -> String {
        let kept = text.chars().map(|c| if c.is_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { ' ' });
        kept.collect::<String>().split_whitespace().collect::<Vec<_>>().join("-")
    };
    let named = [&figure.id, &figure.title].map(|text| plain(text)).into_iter().find(|name| !name.is_empty());
    named.unwrap_or_else(|| "figure".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_names_that_every_disk_takes() {
        let of = |id: &str, title: &str| stem(&Figure { id: id.into(), title: title.into(), ..Figure::default() });
        assert_eq!(of("scaling-kl", "KL"), "scaling-kl");
        assert_eq!(of("", "E(τ) of a/b: 5 %"), "e-τ-of-a-b-5");
        assert_eq!(of("", "?"), "figure");
    }
}

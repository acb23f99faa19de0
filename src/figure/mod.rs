//! Figures and tables as data, and their pictures: SVG, PDF, PNG and CSV for experiments and the command line,
//! the same [`Figure`] in the window (`gui/plot`). Nothing here touches a disk.
//!
//! SVG, PDF and PNG come from one list of shapes (`scene`). Text is measured, and in PDF and PNG
//! drawn, with the fonts of egui; in the SVG every text states its width.
//!
//! | file | what |
//! |---|---|
//! | `model` | figures as data |
//! | `scene`, `svg`, `pdf`, `png`, `csv`, `page` | the list of shapes, and what is written from it |
//! | `layout`, `bounds`, `ticks`, `labels`, `legend` | where everything is |
//! | `grid` | pictures and maps: coloured squares side by side, and their scale |
//! | `thin` | long lines with no more points than a picture can show |
//! | `series`, `palette`, `text` | data as shapes; the colours, for the window too, and markers; widths and outlines of text |
//! | `table`, `illustrated` | tables; what was found beside its figures and tables |

mod bounds;
mod csv;
mod grid;
mod illustrated;
mod labels;
mod layout;
mod legend;
mod model;
mod page;
mod palette;
mod pdf;
mod png;
mod scene;
mod series;
mod svg;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod thin;
mod ticks;

pub use bounds::{Frame, Omitted, Slot, bounds, slots};
pub use csv::{Records, comment, csv, records};
pub use illustrated::Illustrated;
pub use labels::{AxisLabel, LABEL_GAP, LABEL_SIZE, LabelRow, label_row};
pub use model::{Axis, Cells, Figure, Grid, Point, RenderOptions, Rule, Scale, Series, Style, Way};
pub use page::Page;
#[cfg(test)]
pub(crate) use palette::contrast;
pub use palette::{COLOURS, Marker, colour, diverging, markers};
pub use pdf::pdf;
pub use png::{Pixels, pixels, png};
pub use svg::svg;
pub use table::{Column, Table, TableOf, Value, fixed};
pub use thin::thin;
pub use ticks::{Tick, minor_ticks, number, ticks};

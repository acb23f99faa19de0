//! Figures and tables as data, and their pictures. An experiment's summary makes figures; the command line and the cluster write them as
//! SVG, PNG and CSV; the window paints the same [`Figure`]. Nothing here touches a disk.
//!
//! SVG, PNG and the window come from one list of shapes ([`scene()`]), so they differ in nothing but the encoding. Text is measured and, in
//! the PNG, drawn with the fonts that egui carries; in the SVG every text states its width, so another font is squeezed or stretched into
//! the same place.
//!
//! | file | what |
//! |---|---|
//! | `model` | figures as data |
//! | `scene`, `svg`, `png`, `csv`, `page` | the list of shapes, and what is written from it |
//! | `layout`, `bounds`, `ticks`, `labels`, `legend` | where everything is |
//! | `series`, `palette`, `text` | data as shapes; the colours, for the window too, and markers; widths and outlines of text |
//! | `table`, `illustrated` | tables; what was found beside its figures and tables |

mod bounds;
mod csv;
mod illustrated;
mod labels;
mod layout;
mod legend;
mod model;
mod page;
mod palette;
mod png;
pub mod scene;
mod series;
mod svg;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod ticks;

pub use bounds::{Frame, Omitted, Slot, bounds, slots};
pub use csv::{Records, csv, records};
pub use illustrated::Illustrated;
pub use layout::scene;
pub use model::{Axis, Figure, Look, Point, Rule, Scale, Series, Style, Way};
pub use page::Page;
#[cfg(test)]
pub(crate) use palette::contrast;
pub use palette::{COLOURS, Marker, colour, markers};
pub use png::png;
pub use svg::svg;
pub use table::{Column, Table, TableOf, Value, fixed};
pub use ticks::{Tick, minor_ticks, number, ticks};

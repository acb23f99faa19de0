//! The courses of several runs beside each other: whose they are, in one picture, and what is odd about them. Numbers in,
//! figures out.
//!
//! | file | what |
//! |---|---|
//! | `track` | the course of a run, of whatever kind, and the fields of its spec |
//! | `picture` | courses as one figure: groups with bands over their runs, smoothed lines over what was logged |
//! | `mean` | means over runs and running means, with their intervals |
//! | `cell` | chosen cells of a run as one figure: colours by architecture, N or seed, means over seeds |
//! | `alarm` | courses that pass their floor, or fall no longer |

mod alarm;
mod cell;
mod mean;
mod picture;
mod track;

pub use alarm::{Alarm, alarms};
pub use cell::{CELL_QUANTITIES, CellChoice, CellCourse, ColourBy, cells_picture, common_axes};
pub use picture::{Choice, Drawn, picture, points_each, smooth_line};
pub use track::{Named, Over, Quantity, Seen, Steps, Track, differing};

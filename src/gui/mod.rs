//! The explorer window.
//!
//! `theme, command, prefs, session → widgets → panels, cards → app`. Panels read [`Session`], edit [`Prefs`] and leave
//! [`Command`]s; [`App`] does what was asked and tells the [`Engine`] what is wanted. Nothing in here waits.

mod app;
mod atlas;
mod background;
mod command;
mod connect;
mod data_table;
mod drain;
mod engine;
mod evidence;
mod fetch;
mod figures;
mod format;
mod glossary;
mod help;
mod in_window;
mod inspector;
mod jobs;
mod landmarks;
mod launch;
mod ledger;
mod looks;
mod obey;
mod on_top;
mod overlay;
mod paint;
mod palette;
mod panels;
mod precision;
mod prefs;
mod prompt;
mod readout;
mod running;
mod runs;
mod session;
mod start;
mod theme;
mod top_bar;
mod tour;
mod verdict;
mod view;
mod widgets;
mod wishes;
mod world_card;

pub use app::App;
pub use command::{Command, Step};
pub use engine::Engine;
pub use launch::{Options, run};
pub use overlay::FrameReport;
#[cfg(feature = "wgpu")]
pub use paint::bench::bench as bench_paint;
pub use prefs::{Look, Prefs, Sort};
pub use runs::RunCommand;
pub use session::Session;
pub use view::{Source, View};

//! The explorer window.
//!
//! `theme, command, prefs, session → view → context → widgets → panels, cards → app`. Panels read [`Session`], edit [`Prefs`] and leave
//! [`Command`]s; [`App`] does what was asked and tells the [`Engine`] what is wanted. Nothing in here waits.
//!
//! | file | what |
//! |---|---|
//! | `launch`, `in_window`, `reopen`, `engine` | opening the window; the app in it; the next one after a lost device; what it asks of whoever computes |
//! | `app`, `drain`, `obey`, `run_actions`, `guide`, `wishes` | a frame: the parts in order, what came in, what was asked for (of runs; of tour, help and size), what is wanted now |
//! | `session`, `prefs`, `view`, `context` | what is known, what is set, what is only looked at; all three as every part gets them |
//! | `command`, `palette`, `start`, `background` | everything a user can do; the list of it; the button a panel is for; what would hold up a frame |
//! | `panels`, `top_bar`, `world_card`, `jobs`, `inspector`, `on_top` | what is on the screen, from the middle outwards |
//! | `evidence`, `running`, `verdict`, `looks` | parts of the inspector and of the world card |
//! | `atlas`, `paint`, `figures`, `data_table`, `table_window` | thumbnails, pictures painted where they are, plots, their numbers and the window for these |
//! | `readout`, `ledger`, `precision`, `verify`, `overlay` | the Bayes error; how exact everything is; 32 bits; whether the device computes correctly; frame times |
//! | `connect`, `fetch`, `runs`, `prompt`, `selection` | another machine, corpora, runs on disk, paths, images pointed at |
//! | `help`, `glossary`, `tour`, `landmarks` | keys and words; the first time, and where its controls lie |
//! | `theme`, `format`, `widgets` | colours and distances; numbers as people read them; small widgets |

mod app;
mod atlas;
mod background;
mod command;
mod connect;
mod context;
mod data_table;
mod drain;
mod engine;
mod evidence;
mod fetch;
mod figures;
mod format;
mod glossary;
mod guide;
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
mod reopen;
mod run_actions;
mod running;
mod runs;
mod selection;
mod session;
mod start;
mod table_window;
mod theme;
mod top_bar;
mod tour;
mod verdict;
mod verify;
mod view;
mod widgets;
mod wishes;
mod world_card;

pub use app::App;
pub use command::{Command, RunCommand};
pub use engine::Engine;
pub use launch::{Options, run};
pub use overlay::FrameReport;
#[cfg(feature = "wgpu")]
pub use paint::bench::bench as bench_paint;
pub use prefs::{Look, Prefs, Sort};
pub use selection::{Source, Step};
pub use session::Session;
pub use view::View;

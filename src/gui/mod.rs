//! The explorer window.
//!
//! `theme, command, prefs, session → view → context → widgets → panels, cards → app`. Panels read
//! `Session`, edit [`Prefs`] and leave `Command`s; [`App`] executes them and tells the [`Engine`]
//! what is wanted. Nothing in here waits.
//!
//! | file | what |
//! |---|---|
//! | `launch`, `in_window`, `window_restart`, `engine` | opening the window; the app in it; the next window after a lost device; what the window asks of the worker |
//! | `app`, `drain`, `run_actions`, `guide`, `request_tracker`, `gliding` | a frame: the parts in order, taking events in, commands about runs, commands of start page, tour, help and size, requests to the worker, the gallery while τ moves |
//! | `session`, `prefs`, `view`, `context` | what is known, what is set, what is looked at; all three as every part gets them |
//! | `command`, `palette`, `primary_action`, `background`, `disk` | every user action and its execution; the list of them; a panel's main button; work on threads of its own; what lies at paths |
//! | `start_page`, `panels`, `top_bar`, `world_card`, `jobs`, `inspector`, `overlays`, `failures` | what is on the screen, from the middle outwards; where it is said why a job failed |
//! | `evidence`, `picture`, `posterior`, `running`, `typicality`, `verdict`, `guidance`, `label_noise` | parts of the inspector and of the world card |
//! | `inspected`, `exactness`, `moved` | the inspected image and the knobs it is of; what "exact" means of a posterior; which knobs have moved since |
//! | `atlas`, `paint`, `plot`, `save_figure`, `data_table`, `table_window` | thumbnails, pictures painted on the device, plots, their files, their numbers and the window for these |
//! | `bayes_error_view`, `sampled_error`, `ledger`, `precision`, `verify`, `frame_times` | the Bayes error, by integrals and by draws; exactness of everything; 32 bits; whether the device computes correctly; frame times |
//! | `connect`, `fetch`, `runs`, `sketching`, `prompt`, `kept_path`, `shared_lists`, `selection`, `chosen_cells`, `pins` | another machine, corpora, runs on disk, drawings, paths, those that are kept, what was open lately, selected images and cells, pinned images |
//! | `help`, `glossary`, `tour`, `landmarks` | keys and words; the tour, and where its controls lie |
//! | `theme`, `format`, `widgets`, `course_controls` | colours and distances; numbers as people read them; small widgets; those of plots of courses |

mod app;
mod atlas;
mod background;
mod bayes_error_view;
mod chosen_cells;
mod command;
mod connect;
mod context;
mod course_controls;
mod data_table;
mod disk;
mod drain;
mod engine;
mod evidence;
mod exactness;
mod failures;
mod fetch;
mod format;
mod frame_times;
mod gliding;
mod glossary;
mod guidance;
mod guide;
mod help;
mod in_window;
mod inspected;
mod inspector;
mod jobs;
mod kept_path;
mod label_noise;
mod landmarks;
mod launch;
mod ledger;
mod moved;
mod overlays;
mod paint;
mod palette;
mod panels;
mod picture;
mod pins;
mod plot;
mod posterior;
mod precision;
mod prefs;
mod primary_action;
mod prompt;
mod request_tracker;
mod run_actions;
mod running;
mod runs;
mod sampled_error;
mod save_figure;
mod selection;
mod session;
mod shared_lists;
mod sketching;
mod start_page;
mod table_window;
mod theme;
mod top_bar;
mod tour;
mod typicality;
mod verdict;
mod verify;
mod view;
mod widgets;
mod window_restart;
mod world_card;

pub use app::App;
pub use engine::Engine;
pub use frame_times::FrameReport;
pub use launch::{Options, run};
#[cfg(feature = "wgpu")]
pub use paint::bench::bench as bench_paint;
pub use prefs::{Prefs, ThemePreference};

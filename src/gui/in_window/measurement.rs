//! The measurement of the frames: at rest, while τ moves, and while a pen draws.

use std::time::{Duration, Instant};

use eframe::egui::{self, ViewportCommand};

use super::Running;
use crate::gui::frame_times::Phase;
use crate::gui::panels;

/// Length of each part of the measurement but one.
const MEASURED: Duration = Duration::from_secs(5);
/// How long τ moves: hundreds of frames, so that their 99th percentile is no single frame.
const MOVED: Duration = Duration::from_secs(20);
/// The whole gallery is waited for no longer than this: then what is in view is enough.
const FILLED: Duration = Duration::from_secs(30);
/// How soon a window is looked at again that paints only what is new.
const SOON: Duration = Duration::from_millis(100);

/// Where the measurement of the frames is.
pub(super) enum Measurement {
    /// Not asked for, or over.
    No,
    /// The gallery is filling.
    Waiting,
    /// Frames at rest, since then.
    Rest(Instant),
    /// Frames while the engine samples, since then.
    Sampling(Instant),
    /// τ rests, since then, and exact images are waited for.
    Settling(Instant),
    /// The pen draws, since then.
    Drawing(Instant),
}

impl Running {
    /// Whether the gallery is there as who drags the slider has it before them.
    fn is_filled(&self) -> bool {
        self.app.settled() && (self.app.session().gallery_complete() || self.started.elapsed() > FILLED)
    }

    /// The next step of the measurement, where one was asked for.
    pub(super) fn measure(&mut self, ctx: &egui::Context) {
        match self.measurement {
            Measurement::No => return,
            Measurement::Waiting if self.is_filled() => {
                self.app.count_frames(Phase::Rest);
                self.measurement = Measurement::Rest(Instant::now());
            }
            // As a window does that nobody touches: frames for their own sake would take the engine's cores.
            Measurement::Waiting => return ctx.request_repaint_after(SOON),
            Measurement::Rest(since) if since.elapsed() > MEASURED => {
                self.app.count_frames(Phase::Sampling);
                self.measurement = Measurement::Sampling(Instant::now());
            }
            Measurement::Rest(_) => {}
            Measurement::Sampling(since) if since.elapsed() > MOVED => {
                self.app.count_frames(Phase::After);
                self.measurement = Measurement::Settling(Instant::now());
            }
            Measurement::Settling(since) if self.app.settled() || since.elapsed() > MEASURED => {
                if self.app.settled() {
                    self.app.was_exact(since.elapsed());
                }
                self.app.slide(1.0);
                self.app.show_panel(panels::draw::ID);
                self.measurement = Measurement::Drawing(Instant::now());
            }
            Measurement::Settling(_) => {}
            Measurement::Drawing(since) if since.elapsed() > MEASURED => {
                self.measurement = Measurement::No;
                ctx.send_viewport_cmd(ViewportCommand::Close);
            }
            // A figure of eight, once a second: another picture in every frame.
            Measurement::Drawing(since) => {
                let turn = std::f32::consts::TAU * since.elapsed().as_secs_f32();
                self.app.pen([0.5 + 0.35 * turn.sin(), 0.5 + 0.35 * (1.03 * 2.0 * turn).sin()]);
            }
            // A slow sweep: another τ in every frame.
            Measurement::Sampling(since) => self.app.slide(1.0 + 0.4 * since.elapsed().as_secs_f64().sin()),
        }
        ctx.request_repaint();
    }
}

//! Frame times: the window's work on a frame, and the intervals between frames.

mod core_wait;
mod follow;

use std::time::{Duration, Instant};

use eframe::egui::{self, Align2, Id, RichText};
use serde::Serialize;

use core_wait::CoreWait;
use follow::{FollowReport, FollowTimes};

pub use follow::ViewedGallery;

/// Frames further apart than this were not waiting for one another.
const PAUSE: Duration = Duration::from_millis(250);
/// Frames the overlay looks at.
const WINDOW: usize = 240;
/// Frames that are kept for the report: hours of them.
const MOST: usize = 2_000_000;

/// What the engine does while frames are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Rest,
    /// It samples, and τ moves.
    Sampling,
    /// τ rests, or something else moves.
    After,
}

/// Times of the frames so far.
#[derive(Default)]
pub struct FrameTimes {
    started: Option<Instant>,
    first_ms: Option<f32>,
    last: Option<Instant>,
    work_ms: Vec<f32>,
    whole_ms: Vec<f32>,
    late: usize,
    interval_ms: Vec<f32>,
    counted: Option<Phase>,
    at_rest_ms: Vec<f32>,
    sampling_ms: Vec<f32>,
    sampling_work_ms: Vec<f32>,
    wait: Option<CoreWait>,
    waited_before: Option<Duration>,
    sampling_wait_ms: Vec<f32>,
    sampling_own_ms: Vec<f32>,
    pen_ms: Vec<f32>,
    follow: FollowTimes,
    visible: bool,
}

/// What is written down about the frames of a session.
#[derive(Debug, Serialize)]
pub struct FrameReport {
    /// Frames painted.
    pub frames: usize,
    /// Milliseconds from the program's entry into the window to its first frame.
    pub first_frame_ms: Option<f32>,
    /// The window's own work on a frame, median, milliseconds.
    pub ui_work_ms_p50: f32,
    /// The same, 99th percentile.
    pub ui_work_ms_p99: f32,
    /// The longest.
    pub ui_work_ms_max: f32,
    /// The ten frames with the most of it, longest first: the number of the frame, from 0, and milliseconds.
    pub ui_work_slowest: Vec<(usize, f32)>,
    /// The window's own work on a frame while τ moved, median, milliseconds; absent if not measured.
    pub ui_work_sampling_ms_p50: Option<f32>,
    /// The same, 99th percentile.
    pub ui_work_sampling_ms_p99: Option<f32>,
    /// Time in such frames in which the window's thread was ready and had no core, 99th percentile, milliseconds;
    /// absent if not measured. It is part of the work, which is by the clock.
    pub ui_wait_sampling_ms_p99: Option<f32>,
    /// Work in such frames without that waiting, 99th percentile.
    pub ui_own_work_sampling_ms_p99: Option<f32>,
    /// Whole work on a frame with tessellation and painting commands, median, milliseconds.
    pub frame_ms_p50: f32,
    /// The same, 99th percentile.
    pub frame_ms_p99: f32,
    /// The longest.
    pub frame_ms_max: f32,
    /// Frames whose whole work took longer than 250 ms.
    pub frames_over_250_ms: usize,
    /// Time between frames while something moved, median, milliseconds.
    pub frame_interval_ms_p50: f32,
    /// The same, 99th percentile.
    pub frame_interval_ms_p99: f32,
    /// Intervals counted.
    pub intervals: usize,
    /// Median interval of frames while the engine was at rest; absent if not measured.
    pub interval_at_rest_ms_p50: Option<f32>,
    /// The same while it sampled.
    pub interval_sampling_ms_p50: Option<f32>,
    /// From a movement of the pen in the panel Draw until the posterior of that drawing is laid out, median,
    /// milliseconds; absent if nothing was drawn.
    pub pen_to_posterior_ms_p50: Option<f32>,
    /// The same, 99th percentile.
    pub pen_to_posterior_ms_p99: Option<f32>,
    /// Drawings that were answered.
    pub pens: usize,
    /// How the gallery followed τ.
    #[serde(flatten)]
    pub follow: FollowReport,
}

impl FrameTimes {
    /// Counts from `started`.
    pub fn since(started: Instant) -> Self {
        Self { started: Some(started), ..Self::default() }
    }

    /// A frame begins now.
    pub fn begin(&mut self) -> Instant {
        if self.counted == Some(Phase::Sampling) {
            self.waited_before = self.wait.get_or_insert_with(CoreWait::of_this_thread).so_far();
        }
        Instant::now()
    }

    /// From now on frames belong to `phase`.
    pub fn count(&mut self, phase: Phase) {
        self.counted = Some(phase);
    }

    /// The posterior of a drawing has come so long after the pen had moved.
    pub fn pen(&mut self, after: Duration) {
        push(&mut self.pen_ms, after.as_secs_f32() * 1e3);
    }

    /// The slider of τ has moved.
    pub fn slid(&mut self) {
        self.follow.moved(Instant::now());
    }

    /// The frame that began at `began` painted the gallery so.
    pub fn viewed(&mut self, gallery: Option<ViewedGallery>, began: Instant) {
        if let Some(gallery) = gallery.filter(|_| self.counted == Some(Phase::Sampling)) {
            self.follow.viewed(gallery, began);
        }
    }

    /// Every image in view was exact so long after τ had moved last.
    pub fn exact(&mut self, after: Duration) {
        self.follow.exact(after);
    }

    pub fn toggle(&mut self) {
        self.visible = !self.visible;
    }

    /// A frame that began at `began` is laid out.
    pub fn frame(&mut self, began: Instant) {
        let now = Instant::now();
        let since_start = |started: Instant| (now - started).as_secs_f32() * 1e3;
        self.first_ms = self.first_ms.or(self.started.map(since_start));
        // While frames are counted none is a pause: leaving slow ones out would flatter.
        let counts = |gap: &Duration| *gap < PAUSE || self.counted.is_some();
        if let Some(gap) = self.last.map(|last| began - last).filter(counts) {
            push(&mut self.interval_ms, gap.as_secs_f32() * 1e3);
            match self.counted {
                Some(Phase::Rest) => push(&mut self.at_rest_ms, gap.as_secs_f32() * 1e3),
                Some(Phase::Sampling) => push(&mut self.sampling_ms, gap.as_secs_f32() * 1e3),
                Some(Phase::After) | None => {}
            }
        }
        self.last = Some(began);
        let work = (now - began).as_secs_f32() * 1e3;
        push(&mut self.work_ms, work);
        if self.counted == Some(Phase::Sampling) {
            push(&mut self.sampling_work_ms, work);
            let waited = self.wait.as_ref().and_then(CoreWait::so_far);
            if let Some((waited, before)) = waited.zip(self.waited_before.take()) {
                let waited = waited.saturating_sub(before).as_secs_f32() * 1e3;
                push(&mut self.sampling_wait_ms, waited);
                push(&mut self.sampling_own_ms, work - waited);
            }
        }
    }

    /// The frame before this one took the window's thread so many seconds in all.
    pub fn painted(&mut self, secs: Option<f32>) {
        self.follow.painted(secs.and_then(|secs| Duration::try_from_secs_f32(secs).ok()));
        let Some(secs) = secs else { return };
        self.late += usize::from(secs > PAUSE.as_secs_f32());
        push(&mut self.whole_ms, secs * 1e3);
    }

    /// Everything so far.
    pub fn report(&self) -> FrameReport {
        FrameReport {
            frames: self.work_ms.len(),
            first_frame_ms: self.first_ms,
            ui_work_ms_p50: quantile(&self.work_ms, 0.5),
            ui_work_ms_p99: quantile(&self.work_ms, 0.99),
            ui_work_ms_max: quantile(&self.work_ms, 1.0),
            ui_work_slowest: slowest(&self.work_ms),
            ui_work_sampling_ms_p50: median(&self.sampling_work_ms),
            ui_work_sampling_ms_p99: percentile_99(&self.sampling_work_ms),
            ui_wait_sampling_ms_p99: percentile_99(&self.sampling_wait_ms),
            ui_own_work_sampling_ms_p99: percentile_99(&self.sampling_own_ms),
            frame_ms_p50: quantile(&self.whole_ms, 0.5),
            frame_ms_p99: quantile(&self.whole_ms, 0.99),
            frame_ms_max: quantile(&self.whole_ms, 1.0),
            frames_over_250_ms: self.late,
            frame_interval_ms_p50: quantile(&self.interval_ms, 0.5),
            frame_interval_ms_p99: quantile(&self.interval_ms, 0.99),
            intervals: self.interval_ms.len(),
            interval_at_rest_ms_p50: median(&self.at_rest_ms),
            interval_sampling_ms_p50: median(&self.sampling_ms),
            pen_to_posterior_ms_p50: median(&self.pen_ms),
            pen_to_posterior_ms_p99: percentile_99(&self.pen_ms),
            pens: self.pen_ms.len(),
            follow: self.follow.report(),
        }
    }

    pub fn show(&self, ctx: &egui::Context) {
        if !self.visible {
            return;
        }
        let tail = |all: &[f32]| all[all.len().saturating_sub(WINDOW)..].to_vec();
        let (work, interval) = (tail(&self.work_ms), tail(&self.interval_ms));
        let area = egui::Area::new(Id::unique("frame times")).anchor(Align2::CENTER_TOP, egui::vec2(0.0, 40.0));
        area.order(egui::Order::Foreground).interactable(false).show(ctx, |ui| {
            egui::Frame::popup(ui.style()).show(ui, |ui| {
                let line = |ui: &mut egui::Ui, text: String| ui.label(RichText::new(text).monospace());
                let three = |all: &[f32]| [0.5, 0.99, 1.0].map(|q| quantile(all, q));
                for (what, [p50, p99, worst]) in [("UI work", three(&work)), ("frame interval", three(&interval))] {
                    line(ui, format!("{what:14} p50 {p50:6.2}   p99 {p99:6.2}   worst {worst:6.2} ms"));
                }
                if !self.pen_ms.is_empty() {
                    let [p50, p99, worst] = three(&tail(&self.pen_ms));
                    let what = "pen, posterior";
                    line(ui, format!("{what:14} p50 {p50:6.2}   p99 {p99:6.2}   worst {worst:6.2} ms"));
                }
                line(ui, format!("last {} frames", work.len()));
            });
        });
    }
}

fn median(values: &[f32]) -> Option<f32> {
    (!values.is_empty()).then(|| quantile(values, 0.5))
}

fn percentile_99(values: &[f32]) -> Option<f32> {
    (!values.is_empty()).then(|| quantile(values, 0.99))
}

/// The ten largest with their places, largest first.
fn slowest(values: &[f32]) -> Vec<(usize, f32)> {
    let mut all: Vec<(usize, f32)> = values.iter().copied().enumerate().collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.truncate(10);
    all
}

fn push(all: &mut Vec<f32>, value: f32) {
    if all.len() < MOST {
        all.push(value);
    }
}

/// The q-quantile by nearest rank; 0 of nothing.
fn quantile(values: &[f32], q: f32) -> f32 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f32::total_cmp);
    let place = (q * sorted.len() as f32).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn quantiles_are_nearest_ranks() {
        let values: Vec<f32> = (1..=100u8).map(f32::from).collect();
        assert_eq!([0.5, 0.99, 1.0].map(|q| super::quantile(&values, q)), [50.0, 99.0, 100.0]);
        assert_eq!(super::quantile(&[], 0.5), 0.0);
    }
}

//! How the gallery follows τ: how many pictures of a newer τ come in a second, and how late.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::{MOST, push, quantile};

/// The gallery as a frame painted it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ViewedGallery {
    /// Where the slider was.
    pub tau: f64,
    /// Images in view.
    pub visible: usize,
    /// Those of them that are of this τ, exact or drafts.
    pub newest: usize,
    /// The drafts among them.
    pub drafts: usize,
}

/// What is counted while τ moves.
#[derive(Default)]
pub struct FollowTimes {
    /// When τ moved first since the last picture that followed it.
    waiting: Option<Instant>,
    /// τ of that picture.
    shown: Option<f64>,
    /// A movement, and the beginning of the frame that follows it, whose end is not known yet.
    painting: Option<(Instant, Instant)>,
    delays_ms: Vec<f32>,
    fresh: usize,
    newest_share: Vec<f32>,
    draft_share: Vec<f32>,
    visible: Vec<f32>,
    span: Option<(Instant, Instant)>,
    exact_ms: Option<f32>,
}

/// How the gallery followed τ. All absent where that was not measured.
#[derive(Debug, Serialize)]
pub struct FollowReport {
    /// Frames a second whose visible images were all of a newer τ than those of the frame before.
    pub fresh_pictures_per_second: Option<f32>,
    /// From the first movement of the slider that no picture has followed to the end of the window's work on
    /// the frame that follows it, median, milliseconds.
    pub slider_to_paint_ms_p50: Option<f32>,
    /// The same, 99th percentile.
    pub slider_to_paint_ms_p99: Option<f32>,
    /// Images in view, median of the frames.
    pub images_in_view: Option<f32>,
    /// Share of them that was of the newest τ: mean of the frames.
    pub share_of_newest_tau_mean: Option<f32>,
    /// The same in the worst frame.
    pub share_of_newest_tau_least: Option<f32>,
    /// Share of them that was a draft: mean of the frames.
    pub share_of_drafts_mean: Option<f32>,
    /// From the last movement until every image in view was exact, milliseconds.
    pub exact_after_rest_ms: Option<f32>,
}

impl FollowTimes {
    /// The slider has moved.
    pub fn moved(&mut self, now: Instant) {
        self.waiting.get_or_insert(now);
    }

    /// A frame that began at `began` painted the gallery so.
    pub fn viewed(&mut self, gallery: ViewedGallery, began: Instant) {
        let ViewedGallery { tau, visible, newest, drafts } = gallery;
        if visible == 0 {
            return;
        }
        let share = |part: usize| part as f32 / visible as f32;
        push(&mut self.newest_share, share(newest));
        push(&mut self.draft_share, share(drafts));
        push(&mut self.visible, visible as f32);
        self.span = Some((self.span.map_or(began, |(first, _)| first), began));
        if newest == visible && self.shown != Some(tau) {
            self.shown = Some(tau);
            self.fresh += usize::from(self.fresh < MOST);
            self.painting = self.waiting.take().map(|moved| (moved, began));
        }
    }

    /// The frame before this one took the window's thread so long in all, or nobody knows.
    pub fn painted(&mut self, whole: Option<Duration>) {
        if let Some((moved, began)) = self.painting.take() {
            let work = whole.unwrap_or_default();
            push(&mut self.delays_ms, (began + work).duration_since(moved).as_secs_f32() * 1e3);
        }
    }

    /// Everything in view was exact so long after the last movement.
    pub fn exact(&mut self, after: Duration) {
        self.exact_ms = Some(after.as_secs_f32() * 1e3);
    }

    /// Everything so far.
    pub fn report(&self) -> FollowReport {
        let of = |all: &[f32], q: f32| (!all.is_empty()).then(|| quantile(all, q));
        let mean = |all: &[f32]| (!all.is_empty()).then(|| all.iter().sum::<f32>() / all.len() as f32);
        let seconds = self.span.map_or(0.0, |(first, last)| (last - first).as_secs_f32());
        FollowReport {
            fresh_pictures_per_second: (seconds > 0.0).then(|| self.fresh as f32 / seconds),
            slider_to_paint_ms_p50: of(&self.delays_ms, 0.5),
            slider_to_paint_ms_p99: of(&self.delays_ms, 0.99),
            images_in_view: of(&self.visible, 0.5),
            share_of_newest_tau_mean: mean(&self.newest_share),
            share_of_newest_tau_least: of(&self.newest_share, 0.0),
            share_of_drafts_mean: mean(&self.draft_share),
            exact_after_rest_ms: self.exact_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slider that moves every 10 ms, and a gallery that follows every other frame.
    #[test]
    fn a_picture_that_follows_late_counts_from_the_first_movement_it_missed() {
        let (start, ms) = (Instant::now(), Duration::from_millis(1));
        let mut times = FollowTimes::default();
        assert!(times.report().fresh_pictures_per_second.is_none());
        for frame in 0..=100 {
            let now = start + 10 * frame * ms;
            times.moved(now);
            let newest = if frame % 2 == 0 { 4 } else { 3 };
            times.painted(Some(2 * ms));
            let gallery = ViewedGallery { tau: f64::from(frame), visible: 4, newest, drafts: 1 };
            times.viewed(gallery, now + ms);
        }
        let report = times.report();
        assert_eq!(report.fresh_pictures_per_second.map(f32::round), Some(51.0));
        // 10 ms late, laid out 1 ms after the slider, painted 2 ms after that; the first followed at once.
        assert_eq!(report.slider_to_paint_ms_p50.map(f32::round), Some(13.0));
        assert_eq!(report.share_of_newest_tau_least, Some(0.75));
        assert_eq!(report.share_of_drafts_mean, Some(0.25));
    }

    #[test]
    fn a_slider_that_stands_still_gives_no_fresh_pictures() {
        let start = Instant::now();
        let mut times = FollowTimes::default();
        for frame in 0..10 {
            let gallery = ViewedGallery { tau: 1.0, visible: 4, newest: 4, drafts: 0 };
            times.viewed(gallery, start + frame * Duration::from_millis(100));
        }
        let report = times.report();
        assert!(report.fresh_pictures_per_second.is_some_and(|rate| rate < 1.2));
        assert!(report.slider_to_paint_ms_p50.is_none());
    }
}

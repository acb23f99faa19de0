//! Where the controls lie that something on top of the panels points at.

use std::collections::BTreeMap;

use eframe::egui::{Align, Rect, Ui};

/// A control that is pointed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Landmark {
    Gallery,
    /// The slider of the base temperature τ, and the Bayes error below it.
    Tau,
    /// The inspected image's posterior.
    Posterior,
}

/// Where each of them was painted in this frame.
#[derive(Debug, Default)]
pub struct Landmarks {
    places: BTreeMap<Landmark, Rect>,
    wanted: Option<Landmark>,
}

impl Landmarks {
    /// A frame begins: nothing is painted yet.
    pub fn forget(&mut self) {
        self.places.clear();
    }

    /// Brings one into view where it is painted next.
    pub fn reveal(&mut self, landmark: Landmark) {
        self.wanted = Some(landmark);
    }

    /// Records where a landmark was painted in this frame.
    pub fn mark(&mut self, ui: &Ui, landmark: Landmark, rect: Rect) {
        let seen = rect.intersect(ui.clip_rect());
        if self.wanted.take_if(|wanted| *wanted == landmark).is_some() && !ui.clip_rect().contains_rect(rect) {
            ui.scroll_to_rect(rect, Some(Align::TOP));
        }
        if seen.is_positive() {
            self.places.insert(landmark, seen);
        }
    }

    /// Where it is, if it is in view.
    pub fn place(&self, landmark: Landmark) -> Option<Rect> {
        self.places.get(&landmark).copied()
    }
}

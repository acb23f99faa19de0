//! A walk to the boundary as far as it has come.

use super::{Arrival, WalkDot, WalkNews};
use crate::data::ImageShape;
use crate::units::ClassId;

/// A class is drawn if it is ever more probable than this.
const VISIBLE: f64 = 0.01;

/// A place on a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The 50/50 point, or the one that comes closest.
    Middle,
    /// A point by its number.
    Point(usize),
}

/// A walk, while it is walked and after.
#[derive(Debug, Default)]
pub struct WalkHistory {
    /// Shape of the pictures, once there is one.
    pub shape: Option<ImageShape>,
    /// Points in the order they were found.
    pub points: Vec<WalkDot>,
    /// How it went, once it is over.
    pub arrival: Option<Arrival>,
}

impl WalkHistory {
    /// Takes news in.
    pub fn take(&mut self, news: &WalkNews) {
        match news {
            WalkNews::Point { shape, dot } => {
                self.shape = Some(*shape);
                // A walk that begins again, on another device, makes its points again.
                self.points.truncate(dot.tile.index);
                self.points.push(dot.clone());
            }
            WalkNews::Arrived(arrival) => self.arrival = Some((**arrival).clone()),
        }
    }

    /// What is at a place.
    pub fn at(&self, mark: Mark) -> Option<&WalkDot> {
        match mark {
            Mark::Middle => self.arrival.as_ref().map(|arrival| &arrival.middle),
            Mark::Point(i) => self.points.get(i),
        }
    }

    /// All places along the path. The 50/50 point is among them unless it is one of the others.
    pub fn along(&self) -> Vec<(Mark, &WalkDot)> {
        let mut all: Vec<_> = self.points.iter().enumerate().map(|(i, dot)| (Mark::Point(i), dot)).collect();
        let middle = self.arrival.as_ref().map(|arrival| &arrival.middle);
        let new = |middle: &&WalkDot| self.points.iter().all(|dot| dot.position != middle.position);
        if let Some(middle) = middle.filter(new) {
            let place = all.partition_point(|(_, dot)| dot.position <= middle.position);
            all.insert(place, (Mark::Middle, middle));
        }
        all
    }

    /// Classes that are more probable than 1 % anywhere, the most probable first.
    pub fn classes(&self) -> Vec<ClassId> {
        let mut most: Vec<f64> = Vec::new();
        for (_, dot) in self.along() {
            let p = &dot.tile.posterior.probabilities;
            most.resize(most.len().max(p.len()), 0.0);
            most.iter_mut().zip(p).for_each(|(most, p)| *most = most.max(*p));
        }
        let mut classes: Vec<ClassId> = (0..most.len()).filter(|&class| most[class] > VISIBLE).collect();
        classes.sort_by(|&a, &b| most[b].total_cmp(&most[a]));
        classes
    }
}

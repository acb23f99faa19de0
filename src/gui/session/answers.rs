//! Answers outside the queue of jobs: gallery, inspected image, evidence map.

use super::Session;
use super::log::Level;
use crate::worker::protocol::{
    Asked, EvidenceMap, EvidenceRequest, GalleryUpdate, Inspection, RunningPosterior, SketchAnswer, Subject,
};

impl Session {
    /// What was asked for cannot be had.
    pub(super) fn take_unanswered(&mut self, asked: Asked, why: String) {
        if asked == Asked::Inspection {
            self.running = None;
        }
        match asked {
            // It stands beside the canvas: every stroke would say it again. What is known is of the drawing before.
            Asked::Sketch => self.sketch = None,
            _ => self.notify(Level::Error, why.clone()),
        }
        self.unanswered.insert(asked, why);
    }

    pub fn take_gallery(&mut self, update: GalleryUpdate) {
        if update.generation < self.least {
            return;
        }
        // What was said of an older request is no longer so.
        self.unanswered.remove(&Asked::Gallery);
        self.gallery.take(update);
    }

    /// Drops pictures that may lie on a device that is gone.
    pub fn forget_pictures(&mut self) {
        self.gallery.clear();
        self.inspection = None;
        self.evidence = None;
    }

    pub fn take_inspection(&mut self, inspection: Inspection) {
        let least = self.inspection.as_ref().map_or(self.least, |old| old.generation);
        if least <= inspection.generation {
            self.unanswered.remove(&Asked::Inspection);
            self.inspection = Some(inspection);
        }
    }

    /// News of a posterior whose classes are still being evaluated.
    pub fn take_running(&mut self, running: RunningPosterior) {
        if running.generation >= self.least {
            self.running = Some(running);
        }
    }

    /// What is known of this image's posterior while its classes are still being evaluated.
    pub fn running_of(&self, subject: &Subject) -> Option<&RunningPosterior> {
        let answered = self.inspection.as_ref().map_or(0, |inspection| inspection.generation);
        self.running.as_ref().filter(|one| one.generation > answered && same_image(&one.subject, subject))
    }

    pub fn take_evidence(&mut self, map: EvidenceMap) {
        let least = self.evidence.as_ref().map_or(self.least, |old| old.request.generation);
        if least <= map.request.generation {
            self.unanswered.remove(&Asked::Evidence);
            self.evidence = Some(map);
        }
    }

    pub fn take_sketch(&mut self, answer: SketchAnswer) {
        let least = self.sketch.as_ref().map_or(self.least, |old| old.request.generation);
        if least <= answer.request.generation {
            self.unanswered.remove(&Asked::Sketch);
            self.sketch = Some(answer);
        }
    }

    /// The evidence map of this image for these classes, if the newest is one.
    pub fn evidence_of(&self, subject: &Subject, a: usize, b: usize) -> Option<&EvidenceMap> {
        let asked =
            |request: &EvidenceRequest| same_image(&request.subject, subject) && (request.a, request.b) == (a, b);
        self.evidence.as_ref().filter(|map| asked(&map.request))
    }

    /// The inspection of this image, if the newest is one of it.
    pub fn inspection_of(&self, subject: &Subject) -> Option<&Inspection> {
        self.inspection.as_ref().filter(|inspection| same_image(&inspection.subject, subject))
    }
}

/// Returns whether two subjects are one latent, whatever the number of samples.
fn same_image(a: &Subject, b: &Subject) -> bool {
    match (a, b) {
        (Subject::Sample { spec: sa, index: a }, Subject::Sample { spec: sb, index: b }) => {
            a == b && sa.seed == sb.seed && sa.class == sb.class
        }
        (Subject::External(a), Subject::External(b)) => a == b,
        _ => false,
    }
}

//! What the engine was asked for.

use std::path::PathBuf;

use bayescope::worker::bayes::protocol::Question;
use bayescope::worker::cell_images::CellImagesRequest;
use bayescope::worker::fetch::FetchRequest;
use bayescope::worker::judged_images::JudgedImagesRequest;
use bayescope::worker::protocol::{
    EvidenceRequest, GalleryRequest, InspectRequest, Job, JobId, KeyRequest, SketchRequest,
};
use bayescope::worker::runs::WatchRequest;

use super::Fake;

impl Fake {
    /// The drawing that was asked for last, and how many were.
    pub fn asked_sketch(&self) -> (Option<SketchRequest>, usize) {
        let state = self.state();
        (state.sketch.clone(), state.sketches)
    }

    /// The evidence map that was asked for last.
    pub fn asked_evidence(&self) -> Option<EvidenceRequest> {
        self.state().explain.clone()
    }

    /// The inspection that was asked for last.
    pub fn asked_inspection(&self) -> Option<InspectRequest> {
        self.state().inspect.clone()
    }

    /// Key pictures that were asked for since the last call.
    pub fn key_requests(&self) -> Vec<KeyRequest> {
        std::mem::take(&mut self.state().key_requests)
    }

    pub fn shown(&self) -> usize {
        self.state().shown
    }

    pub fn pending(&self) -> Option<GalleryRequest> {
        self.state().pending.clone()
    }

    /// What was asked about the Bayes error since the last call.
    pub fn questions(&self) -> Vec<Question> {
        std::mem::take(&mut self.state().questions)
    }

    pub fn jobs(&self) -> Vec<(JobId, Job)> {
        self.state().jobs.clone()
    }

    /// Of which world each of them is alone.
    pub fn meant(&self) -> Vec<Option<String>> {
        self.state().meant.clone()
    }

    pub fn pauses(&self) -> Vec<(JobId, bool)> {
        self.state().pauses.clone()
    }

    /// Runs whose best epoch was asked for.
    pub fn checkpoints(&self) -> Vec<PathBuf> {
        self.state().checkpoints.clone()
    }

    /// Worst images that were asked for.
    pub fn cell_images(&self) -> Vec<(JobId, CellImagesRequest)> {
        self.state().cell_images.clone()
    }

    /// Worst images of judged models that were asked for.
    pub fn judged(&self) -> Vec<(JobId, JudgedImagesRequest)> {
        self.state().judged.clone()
    }

    /// Corpora that were asked for.
    pub fn fetches(&self) -> Vec<(JobId, FetchRequest)> {
        self.state().fetches.clone()
    }

    /// Which run folders are watched.
    pub fn watched(&self) -> WatchRequest {
        self.state().watched.clone()
    }

    /// Bundled worlds that were to be looked at.
    pub fn glimpsed(&self) -> Vec<&'static str> {
        self.state().glimpsed.clone()
    }

    pub fn cancelled(&self) -> Vec<JobId> {
        self.state().cancelled.clone()
    }
}

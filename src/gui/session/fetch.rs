//! The corpus that was asked for last.

use crate::data::fetch::Fetched;
use crate::worker::fetch::FetchRequest;
use crate::worker::protocol::{JobId, Outcome};

/// A corpus on its way.
#[derive(Debug)]
pub struct FetchView {
    /// Its job.
    pub job: JobId,
    /// What was asked for.
    pub request: FetchRequest,
    /// What mirrors answered that gave nothing: address and cause, the last of each.
    pub refused: Vec<(String, String)>,
    /// What came.
    pub fetched: Option<Box<Fetched>>,
    /// How the job ended.
    pub outcome: Option<Outcome>,
}

impl FetchView {
    /// It was asked for.
    pub fn begin(job: JobId, request: FetchRequest) -> Self {
        Self { job, request, refused: Vec::new(), fetched: None, outcome: None }
    }

    /// A mirror gave nothing.
    pub fn refused(&mut self, mirror: String, cause: String) {
        self.refused.retain(|(other, _)| *other != mirror);
        self.refused.push((mirror, cause));
    }
}

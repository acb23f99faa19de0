//! The corpus that was asked for last.

use crate::data::fetch::Fetched;
use crate::worker::fetch::FetchRequest;
use crate::worker::protocol::{JobId, Outcome};

/// A corpus on its way.
#[derive(Debug)]
pub struct FetchView {
    pub job: JobId,
    pub request: FetchRequest,
    /// What mirrors answered that gave nothing: address and cause, the last of each.
    pub refused: Vec<(String, String)>,
    pub fetched: Option<Box<Fetched>>,
    pub outcome: Option<Outcome>,
}

impl FetchView {
    pub fn begin(job: JobId, request: FetchRequest) -> Self {
        Self { job, request, refused: Vec::new(), fetched: None, outcome: None }
    }

    /// A mirror gave nothing.
    pub fn refused(&mut self, mirror: String, cause: String) {
        self.refused.retain(|(other, _)| *other != mirror);
        self.refused.push((mirror, cause));
    }
}

//! Progress of a judgement.

use serde::Serialize;

use crate::error::Result;
use crate::events::{Events, Progress};

/// What a judgement is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JudgeEvent {
    /// What.
    pub stage: Stage,
    /// How far with it.
    pub progress: Progress,
}

/// A part of the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "stage", content = "of")]
pub enum Stage {
    /// The archive of the images is hashed, in bytes.
    Truth,
    /// The file of a model is read, one of so many.
    Reading(String),
    /// A network is run, image by image.
    Running(String),
    /// The labels of the dataset are tested against its posteriors.
    Labels,
    /// The figures of a model, their intervals and its tests, step by step.
    Measuring(String),
    /// Models are compared, pair by pair.
    Comparing,
}

impl Stage {
    /// The stage as shown beside its progress, with the unit that is counted.
    pub fn label(&self) -> String {
        match self {
            Self::Truth => "checking the dataset (bytes)".into(),
            Self::Reading(file) => format!("reading {file}"),
            Self::Running(name) => format!("running {name} (images)"),
            Self::Labels => "testing the labels of the dataset".into(),
            Self::Measuring(name) => format!("judging {name} (steps)"),
            Self::Comparing => "comparing models (pairs)".into(),
        }
    }
}

/// Reports the steps of a stage one by one; the caller may stop between any two.
pub(super) struct Steps<'a> {
    events: &'a mut dyn Events<JudgeEvent>,
    event: JudgeEvent,
}

impl<'a> Steps<'a> {
    /// Reports that a stage of `total` steps begins.
    pub(super) fn begin(events: &'a mut dyn Events<JudgeEvent>, stage: Stage, total: usize) -> Result<Self> {
        let event = JudgeEvent { stage, progress: Progress { done: 0, total } };
        events.report(event.clone())?;
        Ok(Self { events, event })
    }

    /// A step is done.
    pub(super) fn step(&mut self) -> Result<()> {
        self.event.progress.done += 1;
        self.events.report(self.event.clone())
    }
}

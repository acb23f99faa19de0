//! Pictures of samples and the numbers beside them. Values are rounded to whole levels over the
//! range of all values of the dataset, so nothing is clipped. The posterior of the rounded image is
//! computed without new noise.

use std::ops::Range;
use std::path::Path;

use super::depth::{divergence, rounded_posteriors};
use super::pieces::SplitImages;
use crate::data::{Column, Levels, Stored, write_table};
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::oracle::posterior::Posterior;
use crate::units::ClassId;

/// The columns of the numbers beside pictures: running number, drawn label, posterior of the
/// rounded image, its log p(x|y) in nats and H in nats, and KL(p‖p_b) in nats of the exact
/// posterior p from that of the rounded image p_b.
const COLUMNS: [(&str, Stored); 6] = [
    ("id", Stored::I64),
    ("y", Stored::I64),
    ("posterior", Stored::F32),
    ("logp", Stored::F64),
    ("aleatoric", Stored::F64),
    ("drift", Stored::F64),
];

/// Prefix of the columns of the rounded image where it does not carry the truth.
const MIDPOINT: &str = "midpoint_";

/// Name of a column beside pictures. Where pictures lose the truth, it says that the posterior is
/// that of a point of the picture's cell.
pub(super) fn name_of(column: &str, costly: bool) -> String {
    let renamed = costly && ["posterior", "logp", "aleatoric"].contains(&column);
    format!("{}{column}", if renamed { MIDPOINT } else { "" })
}

/// Name and columns of a piece's numbers, for K classes.
pub(super) fn columns(classes: usize) -> Vec<Column<'static>> {
    let row = |name: &str| if ["posterior", "logp"].contains(&name) { vec![classes] } else { Vec::new() };
    COLUMNS.iter().map(|&(name, stored)| Column { name, stored, shape: row(name) }).collect()
}

/// Images as whole levels, and what they say.
pub(super) struct Rounded {
    /// Levels, NCHW.
    pub pixels: Vec<u16>,
    ids: Range<usize>,
    labels: Vec<ClassId>,
    posteriors: Vec<Posterior>,
    /// KL(p‖p_b), nats.
    drift: Vec<f64>,
}

impl Rounded {
    /// Rounds the images of a piece.
    pub fn of(
        pieces: &SplitImages<'_>,
        range: &Range<usize>,
        levels: Levels,
        events: &mut dyn Events<Progress>,
    ) -> Result<Self> {
        let (x, exact) = (pieces.x(range)?, pieces.posteriors(range)?);
        let posteriors = rounded_posteriors(pieces.work.world, &x, levels, &pieces.work.spec.settings, events)?;
        Ok(Self {
            pixels: x.iter().map(|&x| levels.level(x)).collect(),
            ids: range.clone(),
            labels: pieces.labels(range)?,
            drift: exact.iter().zip(&posteriors).map(|(exact, rounded)| divergence(exact, rounded)).collect(),
            posteriors,
        })
    }

    /// Keeps the numbers.
    pub fn write(&self, path: &Path, classes: usize) -> Result<()> {
        let Self { ids, labels, posteriors, drift, .. } = self;
        write_table(path, ids.len(), &columns(classes), &mut |column, rows| {
            let of = &posteriors[rows.clone()];
            Ok(match COLUMNS[column].0 {
                "id" => rows.map(|i| (ids.start + i) as f64).collect(),
                "y" => labels[rows].iter().map(|&label| label as f64).collect(),
                "posterior" => of.iter().flat_map(|p| p.probabilities.iter().copied()).collect(),
                "logp" => of.iter().flat_map(|p| p.log_likelihood.iter().copied()).collect(),
                "aleatoric" => of.iter().map(|p| p.entropy_nats).collect(),
                _ => drift[rows].to_vec(),
            })
        })
    }
}

//! The worst images of a finished cell, from a run folder: what the classifier says, and the
//! images.

use super::cells::Run;
use super::folder::{Planned, RunFolder};
use super::picked::{CellPictures, PoolReader, SAME};
use crate::data::read_json;
use crate::error::{Error, Result, did_you_mean};
use crate::experiment::{Files, WORST_FILE, Worst, test_pool};

/// The worst images of a cell, in the order of [`Worst::images`].
pub type WorstImages = CellPictures<Worst>;

impl RunFolder {
    /// A cell of the plan.
    ///
    /// # Errors
    /// When the plan has no such cell.
    pub fn planned(&self, id: &str) -> Result<&Planned> {
        let run = self.path.display();
        let unknown = || {
            let meant = did_you_mean(id, self.plan.iter().map(|planned| planned.id.as_str()));
            Error::input(format!("{run} has no cell {id}{meant}: `bayescope plan {run}` lists its cells"))
        };
        self.plan.iter().find(|planned| planned.id == id).ok_or_else(unknown)
    }

    /// The worst test images of a finished cell, without the images themselves.
    ///
    /// # Errors
    /// When there is no such cell, it is not finished, or it was measured by a version that kept
    /// none, or came with the program; says what helps.
    pub fn worst(&self, id: &str) -> Result<Worst> {
        let label = self.planned(id)?.label();
        let path = self.cell(id).join(WORST_FILE);
        if !self.finished(id) {
            return Err(Error::input(format!("{label} is not finished: its worst images are known when it is")));
        }
        if let Some(worst) = read_json::<Worst>(&path)? {
            return match worst.id == id {
                true => Ok(worst),
                false => Err(Error::file(&path, format!("belongs to cell {}, not to {id}", worst.id))),
            };
        }
        if self.is_example() {
            return Err(Error::input(format!(
                "this run came with the program, without images and networks: `bayescope run docs/results/{}.toml --out RUN` of the \
                 source code makes them",
                self.spec.name
            )));
        }
        let (result, run) = (self.result_path(id), self.path.display());
        Err(Error::input(format!(
            "{label} was measured before worst images were kept; remove {} and run `bayescope resume {run}`: it is measured \
             again from its last checkpoint, without training",
            result.display()
        )))
    }

    /// Whether this run is one on that world (`OracleInfo::world_id`), told by the
    /// hash of a cell.
    ///
    /// # Errors
    /// Names a weight file of the spec that cannot be read.
    pub fn is_on(&self, world_id: &str) -> Result<bool> {
        // A cell that depends on no other file needs none to be read.
        let plain = |planned: &&Planned| !self.spec.pretrained.contains_key(&planned.cell.architecture);
        let (data, features) = (self.data.clone(), self.features.clone());
        let (files, planned) = match self.plan.iter().find(plain) {
            Some(planned) => {
                (Files { oracle: world_id.to_owned(), pretrained: Default::default(), data, features }, planned)
            }
            None => match self.plan.first() {
                Some(planned) => (Files::of(&self.spec, world_id, data.as_ref(), &features)?, planned),
                None => return Ok(false),
            },
        };
        Ok(planned.cell.id(&self.spec, &files)? == planned.id)
    }

    /// The worst test images of a finished cell with their pictures; of the pool only these are
    /// read.
    ///
    /// # Errors
    /// As [`Self::worst`]; names a pool that is missing, damaged or of other images.
    pub fn worst_images(&self, id: &str) -> Result<WorstImages> {
        let worst = self.worst(id)?;
        let condition = self.planned(id)?.cell.condition;
        let pool = PoolReader::open(self, &test_pool(&self.spec, condition), condition)?;
        let (mut x, mut posteriors) = (Vec::new(), Vec::new());
        for one in &worst.images {
            let posterior = pool.posterior(one.image)?;
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= SAME;
            if one.p.len() != pool.classes || !posterior.probabilities.iter().zip(&one.p).all(near) {
                return Err(pool.other(one.image));
            }
            x.extend(pool.x(one.image)?);
            posteriors.push(posterior);
        }
        Ok(CellPictures::of(self.planned(id)?, worst, pool, x, posteriors))
    }
}

//! Records of an external run: docs/external-runs.md.

use std::path::PathBuf;

use bayescope::run::external::{ExternalFolder, Header};
use numpy::PyReadonlyArrayDyn;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::raised;
use crate::json;

/// The folder of an external run.
#[pyclass(frozen, module = "bayescope._engine")]
pub struct Run {
    folder: ExternalFolder,
}

#[pymethods]
impl Run {
    /// Opens a folder that was made.
    #[new]
    fn new(folder: PathBuf) -> PyResult<Self> {
        Ok(Self { folder: ExternalFolder::open(&folder).map_err(raised)? })
    }

    /// Writes the record of a step; one that is there is replaced, and a finished run goes on.
    #[pyo3(signature = (step, values, epoch, images, seconds, train_loss))]
    #[allow(clippy::too_many_arguments)]
    fn log(
        &self,
        py: Python<'_>,
        step: u64,
        values: PyReadonlyArrayDyn<'_, f32>,
        epoch: Option<f64>,
        images: Option<u64>,
        seconds: Option<f64>,
        train_loss: Option<f64>,
    ) -> PyResult<()> {
        let (n, k) = (self.folder.spec.test.images, self.folder.spec.test.classes.len());
        let values = values.as_array();
        if values.shape() != [n, k] {
            let given = values.shape();
            return Err(PyValueError::new_err(format!(
                "the predictions are {given:?}; those of the test images are [{n}, {k}]"
            )));
        }
        let values: Vec<f32> = values.iter().copied().collect();
        let header = Header { epoch, images, seconds, train_loss };
        py.detach(|| self.folder.log(step, &header, &values)).map_err(raised)
    }

    /// The last step that was logged.
    #[getter]
    fn last_step(&self) -> PyResult<Option<u64>> {
        self.folder.last_step().map_err(raised)
    }

    /// The seconds in the last record before a step.
    fn seconds_before(&self, py: Python<'_>, step: u64) -> PyResult<Option<f64>> {
        py.detach(|| self.folder.seconds_before(step)).map_err(raised)
    }

    /// Says that nothing more comes.
    fn finish(&self) -> PyResult<()> {
        self.folder.finish().map_err(raised)
    }

    /// What `bayescope summary --json` prints.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.folder.summary().and_then(|(summary, _)| json(&summary))).map_err(raised)
    }

    /// What `bayescope external worst --json` prints.
    fn worst(&self, py: Python<'_>, step: Option<u64>, count: usize) -> PyResult<String> {
        py.detach(|| self.folder.worst(step, count).and_then(|worst| json(&worst))).map_err(raised)
    }

    /// What the records hold: logits, probabilities or log-probabilities.
    #[getter]
    fn predictions(&self) -> &'static str {
        self.folder.spec.external.predictions.describe()
    }

    /// Names of the classes.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.folder.spec.test.classes.clone()
    }
}

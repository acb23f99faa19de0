//! A world at its knobs, and what it is asked.

use bayescope::device::DeviceChoice;
use bayescope::error::{Error, Result};
use bayescope::flow::Precision;
use bayescope::judge::Kind;
use bayescope::oracle::label_noise::LabelNoise;
use bayescope::oracle::posterior::Prior;
use bayescope::oracle::world::Settings;
use bayescope::run::external::StartExternal;
use bayescope::units::{ClassId, Seed, Smoothing, Tau, parse_fraction};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyArray4, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray4};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::draw::{Arrays, Classes, sample};
use crate::engine::{Engine, Open, Stop};
use crate::errors::raised;
use crate::estimates::EstimateLimits;
use crate::json;
use crate::scores::{Maps, evidence, score, typicality};
use crate::stream::Stream;
use crate::validate::validated;
use crate::walk;

/// Posterior [n, K], log p(x|y) [n, K], H(p) [n], log p(x) [n].
type Scored<'py> =
    (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// Cells [n, rows, columns], their sum [n], log p(x|for) − log p(x|against) [n], nats; the classes for [n] and against [n].
type Explained<'py> = (
    Bound<'py, PyArray3<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
);

/// Images of the points [points, C, H, W], that of the 50/50 point [C, H, W], all else as JSON.
type Walked<'py> = (Bound<'py, PyArray4<f32>>, Bound<'py, PyArray3<f32>>, String);

/// An open world at its knobs.
#[pyclass(frozen, module = "bayescope._engine")]
pub struct World {
    engine: Engine,
    settings: Settings,
    info: String,
    classes: Vec<String>,
    shape: [usize; 3],
    device: String,
    batch: usize,
}

#[pymethods]
impl World {
    /// Opens a world at τ = 1, T = 1 and the uniform prior.
    #[new]
    fn new(py: Python<'_>, name: String, device: &str, precision: &str) -> PyResult<Self> {
        let device: DeviceChoice = device.parse().map_err(raised)?;
        let precision = match precision {
            "f32" => Precision::F32,
            "f64" if device == DeviceChoice::Cpu => Precision::F64,
            "f64" => return Err(PyValueError::new_err("precision \"f64\" needs device \"cpu\"")),
            other => return Err(PyValueError::new_err(format!("precision {other:?} is neither \"f32\" nor \"f64\""))),
        };
        let (engine, opened) = Engine::open(py, name, device, precision)?;
        let classes = opened.info.class_names.clone();
        Ok(Self {
            engine,
            settings: Settings::default_for(classes.len()),
            info: json(&opened.info).map_err(raised)?,
            classes,
            shape: opened.shape,
            device: opened.device,
            batch: opened.batch,
        })
    }

    /// The same world at other knobs; it is not opened again.
    #[pyo3(signature = (tau, smoothing, prior, label_noise=None))]
    fn at(&self, tau: f64, smoothing: f64, prior: Option<Vec<f64>>, label_noise: Option<&str>) -> PyResult<Self> {
        let classes = self.classes.len();
        let settings = || -> Result<Settings> {
            let prior = match prior {
                None => Prior::uniform(classes),
                Some(weights) if weights.len() == classes => Prior::new(&weights)?,
                Some(weights) => {
                    let given = weights.len();
                    return Err(Error::input(format!(
                        "the class prior has {given} entries, this world {classes} classes"
                    )));
                }
            };
            let label_noise = label_noise.map(LabelNoise::parse).transpose()?;
            label_noise.as_ref().map_or(Ok(()), |noise| noise.check(classes))?;
            Ok(Settings { tau: Tau::new(tau)?, smoothing: Smoothing::new(smoothing)?, prior, label_noise })
        };
        Ok(Self {
            engine: self.engine.clone(),
            settings: settings().map_err(raised)?,
            info: self.info.clone(),
            classes: self.classes.clone(),
            shape: self.shape,
            device: self.device.clone(),
            batch: self.batch,
        })
    }

    /// x, y, posterior, logp and aleatoric of images 0…n−1 of a seed.
    #[pyo3(signature = (n, seed, class_name=None, each=None))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        seed: u64,
        class_name: Option<String>,
        each: Option<Vec<usize>>,
    ) -> PyResult<Arrays<'py>> {
        let classes = match (class_name, each) {
            (Some(name), _) => Classes::One(name),
            (None, Some(each)) => Classes::Each(each),
            (None, None) => Classes::Prior,
        };
        let settings = self.settings.clone();
        let work = move |open: &Open, stop: &Stop| sample(open, stop, &settings, (n, Seed(seed)), &classes);
        self.engine.ask(work).wait(py)?.arrays(py, self.shape, self.classes.len())
    }

    /// Posterior, log p(x|y), H(p) and log p(x) of world-space images.
    fn score<'py>(&self, py: Python<'py>, x: PyReadonlyArray4<'py, f32>) -> PyResult<Scored<'py>> {
        let (x, n) = self.images(&x)?;
        let (settings, k) = (self.settings.clone(), self.classes.len());
        let work = move |open: &Open, stop: &Stop| score(open, stop, &settings, x);
        let [posterior, logp, entropy, log_px] = self.engine.ask(work).wait(py)?;
        Ok((
            posterior.into_pyarray(py).reshape([n, k])?,
            logp.into_pyarray(py).reshape([n, k])?,
            entropy.into_pyarray(py),
            log_px.into_pyarray(py),
        ))
    }

    /// How images of these log p(x), nats, [n], stand to so many samples, as JSON.
    fn typicality(&self, py: Python<'_>, log_px: PyReadonlyArray1<'_, f64>, samples: usize) -> PyResult<String> {
        let (settings, log_px) = (self.settings.clone(), log_px.as_array().to_vec());
        self.engine.ask(move |open, stop| typicality(open, stop, &settings, &log_px, samples)).wait(py)
    }

    /// Maps of the evidence in world-space images, between two classes or the two under which each is likeliest.
    #[pyo3(signature = (x, between=None))]
    fn evidence<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray4<'py, f32>,
        between: Option<(ClassId, ClassId)>,
    ) -> PyResult<Explained<'py>> {
        let (x, n) = self.images(&x)?;
        let settings = self.settings.clone();
        let work = move |open: &Open, stop: &Stop| evidence(open, stop, &settings, &x, between);
        let Maps { size: [rows, columns], cells, sum, total, speaks_for, against } = self.engine.ask(work).wait(py)?;
        Ok((
            cells.into_pyarray(py).reshape([n, rows, columns])?,
            sum.into_pyarray(py),
            total.into_pyarray(py),
            speaks_for.into_pyarray(py),
            against.into_pyarray(py),
        ))
    }

    /// A walk between samples (their numbers) or images [C, H, W], or towards a class.
    #[pyo3(signature = (start, to, towards, steps, seed, of_class))]
    #[allow(clippy::too_many_arguments)]
    fn walk<'py>(
        &self,
        py: Python<'py>,
        start: &Bound<'py, PyAny>,
        to: &Bound<'py, PyAny>,
        towards: Option<ClassId>,
        steps: usize,
        seed: u64,
        of_class: Option<ClassId>,
    ) -> PyResult<Walked<'py>> {
        let spec = walk::asked(start, to, towards, steps, (Seed(seed), of_class))?;
        let (settings, [c, h, w]) = (self.settings.clone(), self.shape);
        let work = move |open: &Open, stop: &Stop| walk::walked(open, stop, &settings, &spec);
        let walk::Walked { x, boundary, told } = self.engine.ask(work).wait(py)?;
        let points = x.len() / boundary.len().max(1);
        Ok((x.into_pyarray(py).reshape([points, c, h, w])?, boundary.into_pyarray(py).reshape([c, h, w])?, told))
    }

    /// The world beside real images, as JSON; with a folder also as a report.
    #[pyo3(signature = (asked, folder=None))]
    fn validate(&self, py: Python<'_>, asked: String, folder: Option<std::path::PathBuf>) -> PyResult<String> {
        let settings = self.settings.clone();
        let work = move |open: &Open, stop: &Stop| validated(open, stop, &settings, &asked, folder.as_deref());
        self.engine.ask(work).wait(py)
    }

    /// The Bayes error as JSON.
    fn bayes_error(&self, py: Python<'_>, limits: PyRef<'_, EstimateLimits>, information: bool) -> PyResult<String> {
        let (asked, settings) = (limits.0, self.settings.clone());
        self.engine.ask(move |open, stop| asked.error(open, stop, &settings, information)).wait(py)
    }

    /// Class hardness as JSON.
    fn hardness(&self, py: Python<'_>, limits: PyRef<'_, EstimateLimits>) -> PyResult<String> {
        let (asked, settings) = (limits.0, self.settings.clone());
        self.engine.ask(move |open, stop| asked.hardness(open, stop, &settings)).wait(py)
    }

    /// The Bayes error at several τ as JSON.
    fn curve(&self, py: Python<'_>, taus: Vec<f64>, limits: PyRef<'_, EstimateLimits>) -> PyResult<String> {
        let (asked, settings) = (limits.0, self.settings.clone());
        self.engine.ask(move |open, stop| asked.curve(open, stop, &settings, &taus)).wait(py)
    }

    /// The τ of a Bayes error as JSON.
    fn tau_of(&self, py: Python<'_>, target: &str, limits: PyRef<'_, EstimateLimits>) -> PyResult<String> {
        let target = parse_fraction(target).map_err(raised)?;
        let (asked, settings) = (limits.0, self.settings.clone());
        self.engine.ask(move |open, stop| asked.tau(open, stop, &settings, target)).wait(py)
    }

    /// Batches of a seed from number `batch` on.
    fn stream(&self, size: usize, seed: u64, batch: usize) -> PyResult<Stream> {
        if size == 0 {
            return Err(PyValueError::new_err("batch_size must be at least 1"));
        }
        if self.settings.tau.get() == 0.0 {
            return Err(PyValueError::new_err("at τ = 0 every image of a class is the same: choose a τ above 0"));
        }
        let (engine, settings) = (self.engine.clone(), self.settings.clone());
        let place = (size, batch, self.batch);
        Ok(Stream::new(engine, settings, Seed(seed), place, (self.shape, self.classes.len())))
    }

    /// Makes the folder of an external run, or finds the same one.
    #[pyo3(signature = (folder, name, images, seed, predictions, train_images))]
    #[allow(clippy::too_many_arguments)]
    fn start_run(
        &self,
        py: Python<'_>,
        folder: std::path::PathBuf,
        name: String,
        images: usize,
        seed: u64,
        predictions: &str,
        train_images: Option<u64>,
    ) -> PyResult<()> {
        let (settings, predictions) = (self.settings.clone(), predictions.parse::<Kind>().map_err(raised)?);
        let work = move |open: &Open, stop: &Stop| {
            let (oracle, precision, seed) = (open.name.clone(), open.precision, Seed(seed));
            let start =
                StartExternal { folder, name, oracle, settings, precision, images, seed, predictions, train_images };
            start.make(&open.world, &open.info.weights_sha256, &mut stop.sink()).map(drop)
        };
        self.engine.ask(work).wait(py)
    }

    /// Names of the classes.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.classes.clone()
    }

    /// What is known about the oracle, as JSON.
    #[getter]
    fn info(&self) -> &str {
        &self.info
    }

    /// Channels, height and width.
    #[getter]
    fn shape(&self) -> (usize, usize, usize) {
        self.shape.into()
    }

    /// What computes.
    #[getter]
    fn device(&self) -> &str {
        &self.device
    }

    /// τ.
    #[getter]
    fn tau(&self) -> f64 {
        self.settings.tau.get()
    }

    /// T.
    #[getter]
    fn smoothing(&self) -> f64 {
        self.settings.smoothing.get()
    }

    /// π.
    #[getter]
    fn prior(&self) -> Vec<f64> {
        self.settings.prior.probabilities().to_vec()
    }

    /// What labels are drawn by, in words.
    #[getter]
    fn label_noise(&self) -> Option<String> {
        self.settings.label_noise.as_ref().map(LabelNoise::describe)
    }
}

impl World {
    /// World-space images in the order of the engine, and their number.
    ///
    /// # Errors
    /// When they are not of this world's shape.
    fn images(&self, x: &PyReadonlyArray4<'_, f32>) -> PyResult<(Vec<f32>, usize)> {
        let (array, [c, h, w]) = (x.as_array(), self.shape);
        let given = array.shape();
        if given[1..] != self.shape {
            let [a, b, d] = [given[1], given[2], given[3]];
            return Err(PyValueError::new_err(format!(
                "the images are {a}×{b}×{d}, this world's are {c}×{h}×{w} (channels, height, width)"
            )));
        }
        Ok((array.iter().copied().collect(), given[0]))
    }
}

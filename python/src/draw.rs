//! Samples on their way to NumPy.

use bayescope::data::class_of;
use bayescope::error::{Error, Result};
use bayescope::oracle::world::{Sample, SampleSpec, Settings, World};
use bayescope::units::{ClassId, Seed, Smoothing};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray4, PyArrayMethods};
use pyo3::prelude::*;

use crate::engine::{Open, Stop};

/// x [n, C, H, W], y [n], posterior [n, K], logp [n, K], aleatoric [n].
pub type Arrays<'py> = (
    Bound<'py, PyArray4<f32>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray1<f64>>,
);

/// Samples with everything known about them; fields as of a saved `.npz`, the posterior in 64 bits.
#[derive(Default)]
pub struct Drawn {
    x: Vec<f32>,
    y: Vec<i64>,
    posterior: Vec<f64>,
    logp: Vec<f64>,
    aleatoric: Vec<f64>,
}

impl Drawn {
    /// With room for `n` samples of a world: a list that cannot grow any more would end the interpreter.
    ///
    /// # Errors
    /// When this machine has not the memory.
    fn with_room(world: &World, n: usize) -> Result<Self> {
        let (values, classes) = (world.shape().dims(), world.class_names().len());
        let lists = || -> std::io::Result<Self> {
            Ok(Self {
                x: list(n.saturating_mul(values))?,
                y: list(n)?,
                posterior: list(n.saturating_mul(classes))?,
                logp: list(n.saturating_mul(classes))?,
                aleatoric: list(n)?,
            })
        };
        lists().map_err(|e| Error::io(format!("room for {n} images with what is known about them"), e))
    }

    fn add(&mut self, sample: &Sample) {
        self.x.extend_from_slice(&sample.x);
        self.y.push(sample.label as i64);
        self.posterior.extend_from_slice(&sample.posterior.probabilities);
        self.logp.extend_from_slice(&sample.posterior.log_likelihood);
        self.aleatoric.push(sample.posterior.entropy_nats);
    }

    /// As arrays, which take the memory over.
    ///
    /// # Errors
    /// Where NumPy has no memory.
    pub fn arrays<'py>(self, py: Python<'py>, [c, h, w]: [usize; 3], classes: usize) -> PyResult<Arrays<'py>> {
        let n = self.y.len();
        Ok((
            self.x.into_pyarray(py).reshape([n, c, h, w])?,
            self.y.into_pyarray(py),
            self.posterior.into_pyarray(py).reshape([n, classes])?,
            self.logp.into_pyarray(py).reshape([n, classes])?,
            self.aleatoric.into_pyarray(py),
        ))
    }
}

/// An empty list with room for `n` values.
fn list<T>(n: usize) -> std::io::Result<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(n)?;
    Ok(list)
}

/// Which class images come from.
pub enum Classes {
    /// The prior.
    Prior,
    /// All one class, by name or number.
    One(String),
    /// Image i of class number i.
    Each(Vec<ClassId>),
}

/// Draws the images 0…n−1 of a seed, in the passes of `bayescope sample`.
///
/// # Errors
/// When a class does not exist, or one is asked for beside labels that are drawn; when this machine has not the memory, the
/// device fails, or nobody waits any more.
pub fn sample(
    open: &Open,
    stop: &Stop,
    settings: &Settings,
    (n, seed): (usize, Seed),
    classes: &Classes,
) -> Result<Drawn> {
    let world = &open.world;
    if settings.smoothing != Smoothing::ONE && !matches!(classes, Classes::Prior) {
        return Err(Error::input(
            "classes gives every image its label, and smoothing asks for labels drawn from p_T(y|x): give one of the two",
        ));
    }
    if settings.tau.get() == 0.0 {
        return Err(Error::input("at τ = 0 every image of a class is the same and has no density: choose a τ above 0"));
    }
    let spec = SampleSpec::new(n, seed);
    let mut drawn = Drawn::with_room(world, n)?;
    let mut take = |samples: Vec<Sample>| -> Result<()> {
        samples.iter().for_each(|sample| drawn.add(sample));
        Ok(())
    };
    match classes {
        Classes::Prior => passes(world, stop, settings, &spec, 0..n, &mut take)?,
        Classes::One(class) => {
            let class = Some(class_of("classes=", class, world.class_names())?);
            passes(world, stop, settings, &SampleSpec { class, ..spec }, 0..n, &mut take)?;
        }
        Classes::Each(classes) => {
            if classes.len() != n {
                return Err(Error::input(format!("{} classes for {n} images", classes.len())));
            }
            let mut samples: Vec<Sample> = Vec::with_capacity(n);
            for class in unique(classes) {
                let indices = (0..n).filter(|&i| classes[i] == class);
                let spec = SampleSpec { class: Some(class), ..spec };
                passes(world, stop, settings, &spec, indices, &mut |more| {
                    samples.extend(more);
                    Ok(())
                })?;
            }
            samples.sort_by_key(|sample| sample.index);
            take(samples)?;
        }
    }
    Ok(drawn)
}

fn unique(classes: &[ClassId]) -> Vec<ClassId> {
    let mut unique = classes.to_vec();
    unique.sort_unstable();
    unique.dedup();
    unique
}

fn passes(
    world: &World,
    stop: &Stop,
    settings: &Settings,
    spec: &SampleSpec,
    mut indices: impl Iterator<Item = usize>,
    take: &mut dyn FnMut(Vec<Sample>) -> Result<()>,
) -> Result<()> {
    loop {
        let piece: Vec<usize> = indices.by_ref().take(world.batch().max(1)).collect();
        if piece.is_empty() {
            return Ok(());
        }
        stop.check()?;
        take(world.sample_watched(spec, settings, &piece, &mut stop.sink())?)?;
    }
}

/// The batches `first`, `first + 1`, … of a stream, `count` of them: batch b has the samples b·size … (b + 1)·size − 1.
///
/// # Errors
/// As [`sample`].
pub fn batches(
    open: &Open,
    stop: &Stop,
    settings: &Settings,
    seed: Seed,
    (first, count, size): (usize, usize, usize),
) -> Result<Vec<Drawn>> {
    let end = first.checked_add(count).and_then(|end| end.checked_mul(size));
    let (Some(from), Some(to)) = (first.checked_mul(size), end) else {
        let last = usize::MAX;
        return Err(Error::input(format!(
            "there is no batch {first} of {size} images: their numbers would pass {last}"
        )));
    };
    let world = &open.world;
    let mut drawn: Vec<Drawn> = Vec::with_capacity(count);
    let (mut batch, spec) = (Drawn::with_room(world, size)?, SampleSpec::new(size, seed));
    passes(world, stop, settings, &spec, from..to, &mut |samples| {
        for sample in &samples {
            batch.add(sample);
            if batch.y.len() == size {
                let next = if drawn.len() + 1 < count { Drawn::with_room(world, size)? } else { Drawn::default() };
                drawn.push(std::mem::replace(&mut batch, next));
            }
        }
        Ok(())
    })?;
    Ok(drawn)
}

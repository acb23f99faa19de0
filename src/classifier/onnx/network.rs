//! The classifier of an ONNX file: opened, checked and run.

use std::path::Path;

use rayon::prelude::*;
use tract_onnx::pb::{GraphProto, ModelProto, ValueInfoProto};

use super::file::{Description, Port};
use super::image::Entry;
use super::options::{KnownBy, Layout, NetworkInfo, OnnxOptions, Scores};
use super::plan::{Plan, Rows};
use super::read::read;
use super::scores::Source;
use super::{operators, plain, scores};
use crate::data::ImageShape;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};

/// Noise images that are looked at to tell probabilities from logits.
const PROBED: usize = 8;
/// How far scores of an image may lie apart in two passes, in parts of the largest: the round-off of half precision.
const ROUNDING: f64 = 1e-3;

/// What an ONNX file says about itself, whether or not it can be run.
///
/// # Errors
/// When it cannot be read, is no ONNX file, is damaged, or a file beside it is missing.
pub fn describe(path: &Path) -> Result<Description> {
    Ok(Description::of(path, &read(path)?))
}

/// A classifier q(y|x) from an ONNX file. Any number of threads may use it at once.
pub struct OnnxClassifier {
    description: Description,
    entry: Entry,
    plan: Plan,
    scores: Scores,
    /// By what it is known what the scores are.
    known_by: KnownBy,
    /// Whether the order of its axes is the one of two in which it runs.
    tried: bool,
    classes: usize,
}

impl OnnxClassifier {
    /// Opens a file for images of a shape, or of the network's own, and K classes, and runs it on a few noise images.
    ///
    /// # Errors
    /// Names the file and what is wrong: damaged, operators that are missing here, images or classes that do not fit, or an
    /// entry or output that nobody chose.
    pub fn open(path: &Path, images: Option<ImageShape>, classes: usize, options: &OnnxOptions) -> Result<Self> {
        let in_file = |error| match error {
            Error::Input(cause) => Error::file(path, cause),
            other => other,
        };
        Self::new(read(path)?, path, images, classes, options).map_err(in_file)
    }

    fn new(
        mut model: ModelProto,
        path: &Path,
        images: Option<ImageShape>,
        classes: usize,
        options: &OnnxOptions,
    ) -> Result<Self> {
        if classes < 2 || options.batch == 0 {
            let batch = options.batch;
            return Err(Error::input(format!(
                "{classes} class(es) in passes of {batch} image(s) are nothing to run it on"
            )));
        }
        let mut description = Description::of(path, &model);
        let graph = model.graph.get_or_insert_default();
        let found = keep(graph, options)?;
        let inputs: Vec<_> = graph.input.iter().map(|input| input.name.clone()).collect();
        description.unsupported = operators::unsupported(&model, path);
        if !description.unsupported.is_empty() {
            return Err(Error::input(operators::complaint(&description.unsupported, description.opset)));
        }
        let needed: Vec<_> = description.inputs.iter().filter(|port| inputs.contains(&port.name)).collect();
        let [port] = needed[..] else {
            let names: Vec<_> = needed.iter().map(|port| port.to_string()).collect();
            return Err(Error::input(format!(
                "a classifier takes images and nothing else, and it takes {} inputs: {}",
                names.len(),
                names.join(", ")
            )));
        };
        let written = if options.input.is_none() { description.normalisation()? } else { None };
        let entered = |layout| {
            let options = OnnxOptions { layout, ..options.clone() };
            Entry::new(port, images, written.clone(), &options)
        };
        let mut planned = |entry: Entry| {
            let plan = prepare(&mut model, path, &port.name, &entry, options.batch);
            let opset = description.opset;
            plan.map_err(|cause| Error::input(format!("it cannot be run here (opset {opset}): {cause}")))
                .map(|plan| (entry, plan))
        };
        let entry = entered(options.layout)?;
        let is_unclear = entry.is_unclear;
        let (entry, plan) = if is_unclear {
            let mut runs = |layout| planned(entered(Some(layout))?).and_then(|way| told_apart(way, classes));
            let nchw = runs(Layout::Nchw);
            // One channel is one anyway.
            match nchw {
                Ok(way) if way.0.network.channels == 1 => way,
                nchw => either(nchw, runs(Layout::Nhwc), port)?,
            }
        } else {
            planned(entry)?
        };
        // A single channel is the same in either order.
        let tried = is_unclear && entry.network.channels > 1;
        let scores = found.scores.unwrap_or(Scores::Logits);
        let mut classifier = Self { description, entry, plan, scores, known_by: found.known_by, tried, classes };
        let noise = classifier.probe(options.range)?;
        if let Some(softmax) = &found.reshaped {
            scores::check_over_classes(&noise, classes, softmax)?;
        }
        classifier.scores = found.scores.map_or_else(|| Scores::of(&noise, classes), Ok)?;
        Ok(classifier)
    }

    /// Scores of noise images [n, K], n ≥ [`PROBED`]: what the network gives, seen once before it counts.
    fn probe(&self, range: Option<[f32; 2]>) -> Result<Vec<f64>> {
        let [low, high] = range.unwrap_or([0.0, 1.0]);
        let dims = self.entry.images.dims();
        let size = self.plan.batch.min(PROBED) * dims;
        let mut state = 1u64;
        // Knuth's generator: any noise will do.
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            low + (high - low) * ((state >> 40) as f32 / (1u64 << 24) as f32)
        };
        let mut x: Vec<f32> = std::iter::repeat_with(&mut noise).take(size).collect();
        let mut rows = self.pass(&x)?;
        // The first image once more, beside others.
        x[dims..].fill_with(&mut noise);
        let again = self.pass(&x)?;
        self.check_alone(&rows[..self.classes], &again[..self.classes])?;
        rows.extend_from_slice(&again[self.classes..]);
        while rows.len() < PROBED * self.classes {
            x.fill_with(&mut noise);
            rows.extend(self.pass(&x)?);
        }
        Ok(rows)
    }

    /// Whether the scores of an image are the same in two passes: what is judged image by image may not depend on what
    /// stands beside an image, nor on chance.
    fn check_alone(&self, once: &[f64], again: &[f64]) -> Result<()> {
        let largest = once.iter().fold(0.0, |largest: f64, score| largest.max(score.abs()));
        let Some(class) = (0..once.len()).find(|&class| (once[class] - again[class]).abs() > ROUNDING * largest) else {
            return Ok(());
        };
        Err(self.complain(format!(
            "its scores of an image depend on the other images of a pass, or on chance: class {class} of the same image has {:.6} beside \
             some and {:.6} beside others. Export it for inference (model.eval(): batch normalisation by running statistics, no dropout), \
             with its softmax over the classes; one that scales a pass as a whole, with a batch size of 1",
            once[class], again[class]
        )))
    }

    fn pass(&self, x: &[f32]) -> Result<Vec<f64>> {
        let Rows { values, classes } = self.plan.run(&self.entry, x).map_err(|cause| self.complain(cause))?;
        if classes != self.classes {
            return Err(self.complain(format!("it tells {classes} classes apart, and here there are {}", self.classes)));
        }
        Ok(values)
    }

    fn complain(&self, cause: impl Into<String>) -> Error {
        Error::file(&self.description.path, cause)
    }

    /// Scores [n, K] of images x [n, C, H, W] as the network gives them (see [`OnnxClassifier::meaning`]), in passes that share
    /// the machine's cores. Memory: the scores, and the passes that run at once.
    ///
    /// # Errors
    /// When `x` holds no whole number of images, the network fails on some, or the caller stops.
    pub fn scores(&self, x: &[f32], events: &mut dyn Events<Progress>) -> Result<Vec<f64>> {
        let dims = self.entry.images.dims();
        if !x.len().is_multiple_of(dims) {
            let images = self.entry.images;
            return Err(Error::input(format!("{} values are no whole number of images of {images}", x.len())));
        }
        let total = x.len() / dims;
        let mut scores = Vec::with_capacity(total * self.classes);
        events.report(Progress { done: 0, total })?;
        for group in x.chunks(self.plan.batch * rayon::current_num_threads() * dims) {
            let passes: Vec<_> =
                group.par_chunks(self.plan.batch * dims).map(|x| self.pass(x)).collect::<Result<_>>()?;
            passes.iter().for_each(|rows| scores.extend_from_slice(rows));
            events.report(Progress { done: scores.len() / self.classes, total })?;
        }
        Ok(scores)
    }

    /// log q(y|x) [n, K] in nats of images x [n, C, H, W] in world space. −∞ only where the network gives a probability of 0.
    /// They are images `first` and on of more.
    ///
    /// # Errors
    /// As [`OnnxClassifier::scores`], and when scores of an image are no distribution, by the number of the image.
    pub fn log_probabilities(&self, x: &[f32], first: usize, events: &mut dyn Events<Progress>) -> Result<Vec<f64>> {
        let scores = self.scores(x, events)?;
        self.scores.log_probabilities(&scores, self.classes, first).map_err(|error| match error {
            Error::Numeric(cause) => Error::Numeric(format!("{}: {cause}", self.description.path.display())),
            other => other,
        })
    }

    /// What the file says about itself.
    pub fn describe(&self) -> &Description {
        &self.description
    }

    /// What is known about it, and how its images and scores are understood.
    pub fn info(&self) -> NetworkInfo {
        NetworkInfo {
            parameters: self.description.parameters,
            producer: self.description.producer.clone(),
            opset: self.description.opset,
            sees: (self.entry.network, self.entry.layout),
            tried: self.tried,
            normalisation: self.entry.normalisation.clone(),
            scores: self.scores,
            known_by: self.known_by,
        }
    }

    /// Shape of the images it is given.
    pub fn images(&self) -> ImageShape {
        self.entry.images
    }

    /// Images of one pass.
    pub fn batch(&self) -> usize {
        self.plan.batch
    }
}

/// Reduces a graph to the chosen output. Returns what is kept of it.
fn keep(graph: &mut GraphProto, options: &OnnxOptions) -> Result<Source> {
    let names: Vec<_> = graph.output.iter().map(|output| output.name.clone()).collect();
    let output = match (&options.output, &names[..]) {
        (Some(asked), _) if names.contains(asked) => asked,
        (None, [only]) => only,
        (asked, _) => {
            let asked = asked
                .as_ref()
                .map_or("which one is read is said by --output of `bayescope evaluate`".into(), |asked| {
                    format!("'{asked}' is none")
                });
            return Err(Error::input(format!("its outputs are '{}', and {asked}", names.join("', '"))));
        }
    };
    let source = scores::source(graph, output, options.scores)?;
    operators::keep_output(graph, &source.value);
    plain::write_out(graph);
    graph.output = vec![ValueInfoProto { name: source.value.clone(), ..Default::default() }];
    Ok(source)
}

/// A plan for the batch size of the file or, where that is open, the one asked for. Some exporters leave it open in a graph that
/// then only takes single images, or gives the scores of all as those of one.
fn prepare(model: &mut ModelProto, path: &Path, input: &str, entry: &Entry, asked: usize) -> Result<Plan, String> {
    let runs = |plan: &Plan| plan.run(entry, &vec![0.0; entry.images.dims()]).is_ok();
    let first = Plan::new(model, path, input, entry, entry.fixed.unwrap_or(asked));
    if entry.fixed.is_some() || asked == 1 || first.as_ref().is_ok_and(runs) {
        return first;
    }
    // Of two complaints the first one is told.
    Plan::new(model, path, input, entry, 1).ok().filter(runs).map_or(first, Ok)
}

/// A way in which images enter, where it leads to the scores of so many classes.
fn told_apart((entry, plan): (Entry, Plan), classes: usize) -> Result<(Entry, Plan)> {
    let rows = plan.run(&entry, &vec![0.0; entry.images.dims()]).map_err(Error::input)?;
    match rows.classes == classes {
        true => Ok((entry, plan)),
        false => Err(Error::input(format!("it tells {} classes apart, and here there are {classes}", rows.classes))),
    }
}

/// The one of two orders of the axes in which a network runs.
fn either(nchw: Result<(Entry, Plan)>, nhwc: Result<(Entry, Plan)>, port: &Port) -> Result<(Entry, Plan)> {
    match (nchw, nhwc) {
        (Ok(_), Ok(_)) => Err(Error::input(format!(
            "its input is {port}, and it runs on images [N, C, H, W] and [N, H, W, C] alike: which are meant is said by --layout of \
             `bayescope evaluate`, or by the number of channels in the file"
        ))),
        (Ok(way), _) | (Err(_), Ok(way)) => Ok(way),
        (Err(cause), Err(_)) => Err(cause),
    }
}

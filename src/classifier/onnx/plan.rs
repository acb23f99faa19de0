//! A network made ready for passes of one size, and the passes.

use std::path::Path;
use std::sync::Arc;

use tract_onnx::model::ParseResult;
use tract_onnx::pb::ModelProto;
use tract_onnx::prelude::{
    InferenceModelExt, IntoRunnable, Tensor, TractError, TractResult, TypedModel, TypedSimplePlan, tvec,
};

use super::file::{fix_shape, folder};
use super::image::Entry;
use super::operators::{reader, shortened};
use super::read::LARGEST;
use crate::error::caught;

/// The network at one batch size. Any number of threads may run passes at once.
pub(super) struct Plan {
    runnable: Arc<TypedSimplePlan>,
    /// Images of one pass.
    pub(super) batch: usize,
}

/// The numbers of one pass.
pub(super) struct Rows {
    /// [n, K].
    pub(super) values: Vec<f64>,
    /// K.
    pub(super) classes: usize,
}

/// What the runtime says when it cannot: files are anyone's, and it panics at some that other tools
/// would not have written.
fn guarded<T>(work: impl FnOnce() -> TractResult<T>) -> Result<T, String> {
    match caught(work) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(e)) => Err(shortened(&format!("{e:#}"))),
        Err(said) => Err(shortened(&said)),
    }
}

/// Whether every value of a pass has a size to work with: a network may compute what it pads, tiles or enlarges by.
fn check_sizes(model: &TypedModel) -> TractResult<()> {
    for node in model.nodes() {
        for shape in node.outputs.iter().filter_map(|output| output.fact.shape.as_concrete()) {
            let numbers = shape.iter().try_fold(1usize, |all, &n| all.checked_mul(n));
            if numbers.is_none_or(|numbers| numbers > LARGEST) {
                let name = &node.name;
                return Err(TractError::msg(format!(
                    "'{name}' makes a value of shape {shape:?}, and {LARGEST} numbers are the most"
                )));
            }
        }
    }
    Ok(())
}

impl Plan {
    /// Prepares passes of `batch` images through input `input` of a model with one output.
    pub(super) fn new(
        model: &mut ModelProto,
        path: &Path,
        input: &str,
        entry: &Entry,
        batch: usize,
    ) -> Result<Self, String> {
        let [a, b, c] = entry.layout.axes(entry.network);
        fix_shape(model, input, [batch, a, b, c]);
        let runnable = guarded(|| {
            let ParseResult { model, .. } = reader().parse(model, folder(path).to_str())?;
            let typed = model.into_typed()?;
            check_sizes(&typed)?;
            typed.into_optimized()?.into_runnable()
        })?;
        Ok(Self { runnable, batch })
    }

    /// Scores of images x [n, C, H, W], 0 < n ≤ [`Plan::batch`].
    pub(super) fn run(&self, entry: &Entry, x: &[f32]) -> Result<Rows, String> {
        let output = guarded(|| {
            let entered = entry.tensor(x, self.batch)?;
            let mut outputs = self.runnable.run(tvec!(entered.into()))?;
            Ok(outputs.pop())
        })?;
        let output: Tensor = output.map(tract_onnx::prelude::IntoTensor::into_tensor).ok_or("it gave nothing")?;
        let classes = match *output.shape() {
            [n, k, ref rest @ ..] if n == self.batch && rest.iter().all(|&side| side == 1) => k,
            [k] if self.batch == 1 => k,
            ref shape => {
                return Err(format!(
                    "its output has the shape {shape:?} for {} image(s), and a classifier's is [N, K]: another output?",
                    self.batch
                ));
            }
        };
        let n = x.len() / entry.images.dims();
        let values =
            guarded(|| Ok(output.cast_to::<f64>()?.try_as_plain_ram()?.as_slice::<f64>()?[..n * classes].to_vec()))?;
        Ok(Rows { values, classes })
    }
}

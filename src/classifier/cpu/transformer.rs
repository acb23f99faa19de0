//! A Transformer layer on the tape, by the kernels that TarFlows use too.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::elementwise::PIECE;
use super::{Maps, Sum, Tape};
use crate::kernels::transformer::{
    ARRAYS, Activations, FirstTokenLayer, FirstTokenRoom, Layer, LayerGradient, Room, Slopes, Span,
};
use crate::kernels::{Buffer, Cache, Real, Threads};

/// Parameters of a layer, in the order of [`crate::kernels::transformer::ARRAYS`].
#[derive(Debug)]
pub struct LayerParameters<'a, T> {
    /// Identities.
    pub ids: [u64; ARRAYS],
    /// Numbers; not needed where [`Tape::layer_loaded`] has them.
    pub numbers: Option<[&'a [T]; ARRAYS]>,
    /// Added to the variances of the norms.
    pub epsilon: f64,
}

/// Layers by the identity of their first parameter, and memory for passes through them.
#[derive(Debug)]
pub(super) struct Layers<T> {
    by_id: ById<Layer<T>>,
    /// Those that are read at the first token alone.
    first_by_id: ById<FirstTokenLayer<T>>,
    free: Vec<Activations<T>>,
    free_first: Vec<FirstTokenRoom<T>>,
    room: Option<LayerRoom<T>>,
}

/// Whether the numbers of a layer are this step's, and the layer.
type ById<L> = HashMap<u64, (bool, Arc<L>)>;

impl<T> Default for Layers<T> {
    fn default() -> Self {
        let (by_id, first_by_id) = (HashMap::new(), HashMap::new());
        Self { by_id, first_by_id, free: Vec::new(), free_first: Vec::new(), room: None }
    }
}

impl<T> Layers<T> {
    /// Before a step: parameters have moved.
    pub fn outdate(&mut self) {
        self.by_id.values_mut().for_each(|(loaded, _)| *loaded = false);
        self.first_by_id.values_mut().for_each(|(loaded, _)| *loaded = false);
    }
}

/// The layer of an identity; `set` gives one that is not this step's its numbers, where there are
/// any.
fn loaded<L: Default>(layers: &mut ById<L>, id: u64, set: Option<impl FnOnce(&mut L)>) -> Arc<L> {
    let (loaded, layer) = layers.entry(id).or_default();
    if let Some(set) = set {
        let mut own = Arc::try_unwrap(std::mem::take(layer)).unwrap_or_default();
        set(&mut own);
        (*loaded, *layer) = (true, Arc::new(own));
    }
    Arc::clone(layer)
}

/// Room for images of `tokens` tokens, `rows` in all.
#[derive(Debug)]
struct LayerRoom<T> {
    widths: [usize; 2],
    rows: usize,
    tokens: usize,
    cache: Cache<T>,
    room: Room<T>,
    slopes: Slopes<T>,
}

impl<T: Real> Tape<T> {
    /// Whether a layer was read in this step, by its first parameter.
    pub fn layer_loaded(&self, id: u64) -> bool {
        let Layers { by_id, first_by_id, .. } = &self.layers;
        by_id.get(&id).is_some_and(|(loaded, _)| *loaded) || first_by_id.get(&id).is_some_and(|(loaded, _)| *loaded)
    }

    /// `x` of `tokens` tokens an image through a layer.
    pub fn transformer(&mut self, x: Maps, tokens: usize, parameters: LayerParameters<'_, T>) -> Maps {
        let LayerParameters { ids, numbers, epsilon } = parameters;
        let set = numbers.map(|numbers| move |layer: &mut Layer<T>| layer.set(numbers, epsilon, Threads::All));
        let layer = loaded(&mut self.layers.by_id, ids[0], set);
        let images = x.rows() / tokens;
        let (threads, temperature) = (Threads::All, 1.0);
        let span = Span { images, first: 0, tokens, slots: None, causal: false, temperature, threads };
        let mut out = self.take(x.len());
        let value = self.value(x);
        out.par_chunks_mut(PIECE).zip(value.par_chunks(PIECE)).for_each(|(out, x)| out.copy_from_slice(x));
        drop(value);
        let free = self.layers.free.pop().filter(|free| free.fits(layer.widths(), span.rows()));
        let mut activations = free.unwrap_or_else(|| Activations::new(layer.widths(), span.rows(), true));
        let mut room = self.layer_room(&layer, span);
        layer.forward(&mut out, span, &mut room.cache, &mut activations, &mut room.room);
        self.layers.room = Some(room);
        let out = self.push(out, Maps { slopes: true, ..x });
        self.record(out, move |tape, slope| tape.transformer_backward(x, ids, &layer, span, activations, slope));
        out
    }

    fn transformer_backward(
        &mut self,
        x: Maps,
        ids: [u64; ARRAYS],
        layer: &Layer<T>,
        span: Span<'_>,
        activations: Activations<T>,
        mut slope: Buffer<T>,
    ) {
        let mut sums = self.layer_sums(ids, layer.widths());
        let gradient = LayerGradient::from(sums.each_mut().map(|sum| &mut *sum.values));
        let mut room = self.layer_room(layer, span);
        layer.backward(&mut slope, span, &activations, &mut room.slopes, Some(gradient));
        self.layers.room = Some(room);
        self.layers.free.push(activations);
        self.sums.extend(ids.into_iter().zip(sums));
        self.add_slope(x, slope);
    }

    /// The first of every image's `tokens` tokens of `x` behind a layer.
    pub fn transformer_first(&mut self, x: Maps, tokens: usize, parameters: LayerParameters<'_, T>) -> Maps {
        let LayerParameters { ids, numbers, epsilon } = parameters;
        let set =
            numbers.map(|numbers| move |layer: &mut FirstTokenLayer<T>| layer.set(numbers, epsilon, Threads::All));
        let layer = loaded(&mut self.layers.first_by_id, ids[0], set);
        let (images, widths) = (x.rows() / tokens, layer.widths());
        let free = self.layers.free_first.pop().filter(|free| free.fits(widths, images, tokens));
        let mut room = free.unwrap_or_else(|| FirstTokenRoom::new(widths, images, tokens));
        let mut out = self.take(images * x.channels);
        layer.forward(&self.value(x), &mut out, &mut room);
        let out = self.push(out, Maps { images, slopes: true, ..x });
        if self.answers {
            self.layers.free_first.push(room);
            return out;
        }
        self.record(out, move |tape, mut slope| {
            let mut sums = tape.layer_sums(ids, widths);
            let mut gradient = LayerGradient::from(sums.each_mut().map(|sum| &mut *sum.values));
            let mut into = tape.take(x.len());
            layer.backward(&mut slope, &mut into, &mut room, &mut gradient);
            tape.sums.extend(ids.into_iter().zip(sums));
            tape.layers.free_first.push(room);
            tape.give(slope);
            tape.add_slope(x, into);
        });
        out
    }

    /// Gradients of a layer's parameters so far.
    fn layer_sums(&mut self, ids: [u64; ARRAYS], widths: [usize; 2]) -> [Sum<T>; ARRAYS] {
        let mut shapes = Layer::<T>::shapes(widths).into_iter();
        ids.map(|id| self.sum(id, shapes.next().map_or(0, |shape| shape.iter().product()), None))
    }

    /// The room of earlier layers, or a larger one.
    fn layer_room(&mut self, layer: &Layer<T>, span: Span<'_>) -> LayerRoom<T> {
        let (rows, tokens, widths) = (span.rows(), span.tokens, layer.widths());
        let room = self.layers.room.take();
        let room = room.filter(|room| room.widths == widths && room.tokens == tokens && room.rows >= rows);
        room.unwrap_or_else(|| LayerRoom {
            widths,
            rows,
            tokens,
            cache: Cache::new(1, tokens),
            room: Room::new(widths, rows, true),
            slopes: Slopes::new(widths, tokens, Threads::All),
        })
    }
}

//! A Transformer layer on the tape, by the kernels that TarFlows use too.

use std::sync::Arc;

use rayon::prelude::*;

use super::elementwise::PIECE;
use super::{Maps, Tape};
use crate::kernels::transformer::{ARRAYS, Activations, Layer, LayerGradient, Room, Slopes, Span};
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
    /// Whether the numbers are this step's, and the layer.
    pub by_id: std::collections::HashMap<u64, (bool, Arc<Layer<T>>)>,
    free: Vec<Activations<T>>,
    room: Option<LayerRoom<T>>,
}

impl<T> Default for Layers<T> {
    fn default() -> Self {
        Self { by_id: Default::default(), free: Vec::new(), room: None }
    }
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
        self.layers.by_id.get(&id).is_some_and(|(loaded, _)| *loaded)
    }

    /// `x` of `tokens` tokens an image through a layer.
    pub fn transformer(&mut self, x: Maps, tokens: usize, parameters: LayerParameters<'_, T>) -> Maps {
        let LayerParameters { ids, numbers, epsilon } = parameters;
        let (loaded, layer) = self.layers.by_id.entry(ids[0]).or_default();
        if let Some(numbers) = numbers {
            let mut set = Arc::try_unwrap(std::mem::take(layer)).unwrap_or_default();
            set.set(numbers, epsilon, Threads::All);
            (*loaded, *layer) = (true, Arc::new(set));
        }
        let layer = Arc::clone(layer);
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
        let mut shapes = Layer::<T>::shapes(layer.widths()).into_iter();
        let mut sums = ids.map(|id| self.sum(id, shapes.next().map_or(0, |shape| shape.iter().product()), None));
        let gradient = LayerGradient::from(sums.each_mut().map(|sum| &mut *sum.values));
        let mut room = self.layer_room(layer, span);
        layer.backward(&mut slope, span, &activations, &mut room.slopes, Some(gradient));
        self.layers.room = Some(room);
        self.layers.free.push(activations);
        self.sums.extend(ids.into_iter().zip(sums));
        self.add_slope(x, slope);
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

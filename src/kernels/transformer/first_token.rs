//! A layer that is read at the first token of every image alone: the last one of a Vision
//! Transformer, whose head reads the class token.
//!
//! All tokens give keys and values; query, projection and MLP are the first token's. What is not
//! computed would be read by nobody, and its gradient is 0.

use rayon::prelude::*;

use super::backward::{LayerGradient, block};
use super::{ARRAYS, Rest};
use crate::kernels::attention::{Attention, HEAD};
use crate::kernels::linear::{Linear, LinearGradient, Normalised};
use crate::kernels::rows::{add_rows, gelu_backward, gelu_into};
use crate::kernels::{Buffer, Real, Threads, add_outer_products};

/// Parameters of such a layer: those of a [`Layer`](super::Layer).
#[derive(Debug, Default)]
pub struct FirstTokenLayer<T> {
    query: Linear<T>,
    keys_values: Linear<T>,
    rest: Rest<T>,
}

/// What a pass computes, which its way back reads, and room for that way.
#[derive(Debug)]
pub struct FirstTokenRoom<T> {
    widths: [usize; 2],
    images: usize,
    tokens: usize,
    attention_norm: Normalised<T>,
    /// Normalised stream before the attention, [images, tokens, C], and of first tokens, [images, C].
    normed: [Buffer<T>; 2],
    /// [images, C].
    query: Buffer<T>,
    /// [images, tokens, 2, C].
    keys_values: Buffer<T>,
    /// Of the attention, padded.
    weights: Buffer<T>,
    /// Output of the heads, [images, C].
    mixed: Buffer<T>,
    mlp_norm: Normalised<T>,
    /// Normalised stream before the MLP, [images, C].
    mlp_normed: Buffer<T>,
    /// MLP before and after GELU, [images, hidden].
    hidden: Buffer<T>,
    active: Buffer<T>,
    /// Gradients: of [`Self::keys_values`], of [`Self::normed`], of the query and of `hidden`.
    by_keys_values: Buffer<T>,
    by_normed: [Buffer<T>; 2],
    by_query: Buffer<T>,
    by_hidden: Buffer<T>,
    /// Scratch of products of gradients.
    outer: Buffer<T>,
}

impl<T: Real> FirstTokenRoom<T> {
    /// For so many images of so many tokens.
    pub fn new(widths: [usize; 2], images: usize, tokens: usize) -> Self {
        let ([c, hidden], rows) = (widths, images * tokens);
        let (all, first) = (|width: usize| Buffer::zeros(rows * width), |width: usize| Buffer::zeros(images * width));
        Self {
            widths,
            images,
            tokens,
            attention_norm: Normalised::new(c, rows),
            normed: [all(c), first(c)],
            query: first(c),
            keys_values: all(2 * c),
            weights: Buffer::zeros(attention::<T>(c, tokens).first_weights(images)),
            mixed: first(c),
            mlp_norm: Normalised::new(c, images),
            mlp_normed: first(c),
            hidden: first(hidden),
            active: first(hidden),
            by_keys_values: all(2 * c),
            by_normed: [all(c), first(c)],
            by_query: first(c),
            by_hidden: first(hidden),
            outer: Buffer::default(),
        }
    }

    /// Whether so many images of such a layer find room.
    pub fn fits(&self, widths: [usize; 2], images: usize, tokens: usize) -> bool {
        self.widths == widths && self.images >= images && self.tokens == tokens
    }
}

fn attention<T: Real>(channels: usize, tokens: usize) -> Attention<T> {
    let scale = T::of((HEAD as f64).sqrt().recip());
    Attention { first: 0, tokens, heads: channels / HEAD, scale, causal: false }
}

/// The first token of every image of `rows` [images, tokens, C] to `out` [images, C].
fn first_tokens<T: Copy>(rows: &[T], tokens: usize, channels: usize, out: &mut [T]) {
    let images = rows.chunks_exact(tokens * channels);
    out.chunks_exact_mut(channels).zip(images).for_each(|(out, image)| out.copy_from_slice(&image[..channels]));
}

impl<T: Real> FirstTokenLayer<T> {
    /// Sets all parameters, as [`Layer::set`](super::Layer::set) does.
    pub fn set(&mut self, arrays: [&[T]; ARRAYS], epsilon: f64, threads: Threads) {
        let channels = arrays[0].len();
        let [weight, bias] = self.rest.set(arrays, epsilon, threads);
        let ((query, keys_values), (query_bias, keys_values_bias)) =
            (weight.split_at(channels * channels), bias.split_at(channels));
        self.query.set(query, query_bias, threads);
        self.keys_values.set(keys_values, keys_values_bias, threads);
    }

    /// Channels, and those of the MLP's hidden layer.
    pub fn widths(&self) -> [usize; 2] {
        self.rest.widths()
    }

    /// `out` [images, C] = [`Layer::forward`](super::Layer::forward)'s result at the first tokens of `x` [images, tokens, C].
    pub fn forward(&self, x: &[T], out: &mut [T], room: &mut FirstTokenRoom<T>) {
        const ONE: Threads = Threads::One;
        let ([c, hidden], tokens, images) = (self.widths(), room.tokens, out.len() / self.widths()[0]);
        let (rows, size) = (images * tokens, block(tokens));
        let [normed, first] = room.normed.each_mut().map(|buffer| &mut **buffer);
        let (normed, first) = (&mut normed[..rows * c], &mut first[..images * c]);
        let (standard, scales) = room.attention_norm.rows(rows);
        let saved = standard.par_chunks_mut(size * c).zip(scales.par_chunks_mut(size));
        let made = normed.par_chunks_mut(size * c).zip(room.keys_values[..rows * 2 * c].par_chunks_mut(size * 2 * c));
        x[..rows * c].par_chunks(size * c).zip(saved).zip(made).for_each(|((x, saved), (normed, keys_values))| {
            self.rest.attention_norm.forward(x, normed, Some(saved), ONE);
            self.keys_values.apply(normed, keys_values);
        });

        first_tokens(normed, tokens, c, first);
        first_tokens(x, tokens, c, out);
        let (query, mixed) = (&mut room.query[..images * c], &mut room.mixed[..images * c]);
        self.query.apply(first, query);
        attention(c, tokens).first(query, &room.keys_values, &mut room.weights, mixed);
        self.rest.proj.apply_add(mixed, out);
        let mlp_normed = &mut room.mlp_normed[..images * c];
        self.rest.mlp_norm.forward(out, mlp_normed, Some(room.mlp_norm.rows(images)), ONE);
        let (before, after) = (&mut room.hidden[..images * hidden], &mut room.active[..images * hidden]);
        self.rest.expand.apply(mlp_normed, before);
        gelu_into(before, after);
        self.rest.contract.apply_add(after, out);
    }

    /// `x` [images, tokens, C] = the gradient of [`Self::forward`]'s input, from that of its result in
    /// `stream` [images, C], which is lost. Adds the gradients of the parameters to `gradient`.
    pub fn backward(
        &self,
        stream: &mut [T],
        x: &mut [T],
        room: &mut FirstTokenRoom<T>,
        gradient: &mut LayerGradient<'_, T>,
    ) {
        let ([c, hidden], tokens, images) = (self.widths(), room.tokens, stream.len() / self.widths()[0]);
        let (rows, size) = (images * tokens, block(tokens));
        let FirstTokenRoom { outer, by_normed: [by_normed, by_first], normed: [normed, first], .. } = room;
        let (by_normed, by_first) = (&mut by_normed[..rows * c], &mut by_first[..images * c]);
        let (by_hidden, active) = (&mut room.by_hidden[..images * hidden], &mut room.active[..images * hidden]);
        let [normed, first] = [&normed[..rows * c], &first[..images * c]];
        gradient.contract.add(stream, active, outer);
        self.rest.contract.backward(stream, by_hidden);
        gelu_backward(&room.hidden[..images * hidden], active, by_hidden);
        gradient.expand.add(by_hidden, &room.mlp_normed[..images * c], outer);
        self.rest.expand.backward(by_hidden, by_first);
        let sums = gradient.mlp_norm.each_mut().map(|sum| &mut **sum);
        self.rest.mlp_norm.backward_rows(by_first, room.mlp_norm.of(0..images), stream, sums);

        gradient.proj.add(stream, &room.mixed[..images * c], outer);
        self.rest.proj.backward(stream, by_first);
        let (by_query, by_keys_values) = (&mut room.by_query[..images * c], &mut room.by_keys_values[..rows * 2 * c]);
        let saved = [&room.query[..images * c], &room.keys_values, &room.weights];
        attention(c, tokens).first_backward(saved, by_first, [by_query, by_keys_values]);
        let (mut of_query, LinearGradient { weight, bias }) = gradient.qkv.split_at(c);
        of_query.add(by_query, first, outer);
        add_outer_products((by_keys_values, 2 * c), (normed, c), rows, &[vec![(0, 0)]], weight);
        add_rows(by_keys_values, bias);
        self.query.backward(by_query, by_first);

        let saved = &room.attention_norm;
        let blocks = x[..rows * c].par_chunks_mut(size * c).zip(by_normed.par_chunks_mut(size * c)).enumerate();
        let sums = blocks.map(|(index, (x, by_normed))| {
            let (start, rows) = (index * size, x.len() / c);
            self.keys_values.backward(&by_keys_values[start * 2 * c..][..rows * 2 * c], by_normed);
            x.fill(T::ZERO);
            for (image, (x, by_normed)) in
                x.chunks_exact_mut(tokens * c).zip(by_normed.chunks_exact_mut(tokens * c)).enumerate()
            {
                let at = (start / tokens + image) * c;
                x[..c].copy_from_slice(&stream[at..][..c]);
                add_rows(&by_first[at..][..c], &mut by_normed[..c]);
            }
            let [mut gain, mut bias] = [(); 2].map(|()| vec![T::ZERO; c]);
            self.rest.attention_norm.backward_rows(by_normed, saved.of(start..start + rows), x, [&mut gain, &mut bias]);
            [gain, bias]
        });
        // In the order of the blocks, whichever thread took them.
        for sums in sums.collect::<Vec<_>>() {
            gradient.attention_norm.iter_mut().zip(&sums).for_each(|(into, sums)| add_rows(sums, into));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Cache;
    use crate::kernels::transformer::{Activations, Layer, Room, Slopes, Span};

    const WIDTHS: [usize; 2] = [128, 200];

    /// Numbers around 0, different for each `seed`.
    fn numbers<T: Real>(count: usize, seed: usize) -> Vec<T> {
        (0..count).map(|i| T::of((((i + 31 * seed) * 7919 % 1009) as f64 - 504.0) / 504.0)).collect()
    }

    fn arrays<T: Real>() -> [Vec<T>; ARRAYS] {
        let mut seed = 0;
        Layer::<T>::shapes(WIDTHS).map(|shape| {
            seed += 1;
            let size = if shape.len() == 2 { (shape[1] as f64).sqrt().recip() } else { 1.0 };
            numbers::<T>(shape.iter().product(), seed).into_iter().map(|v| v * T::of(size)).collect()
        })
    }

    /// Result, gradient of the input and gradients of the parameters: by the whole layer, read at the first
    /// tokens and with no gradient at any other; and by this one.
    fn both<T: Real>(x: &[T], slope: &[T], images: usize, tokens: usize) -> [Vec<Vec<T>>; 2] {
        let ([c, _], rows, arrays) = (WIDTHS, images * tokens, arrays::<T>());
        let arrays = arrays.each_ref().map(Vec::as_slice);
        let sums = || Layer::<T>::shapes(WIDTHS).map(|shape| vec![T::of(0.5); shape.iter().product()]);

        let mut layer = Layer::default();
        layer.set(arrays, 1e-6, Threads::One);
        let (slots, threads) = (None, Threads::All);
        let span = Span { images, first: 0, tokens, slots, causal: false, temperature: 1.0, threads };
        let mut activations = Activations::new(WIDTHS, rows, true);
        let (mut stream, mut result) = (x.to_vec(), vec![T::ZERO; images * c]);
        let mut room = Room::new(WIDTHS, rows, true);
        layer.forward(&mut stream, span, &mut Cache::new(1, tokens), &mut activations, &mut room);
        first_tokens(&stream, tokens, c, &mut result);
        let mut back = vec![T::ZERO; rows * c];
        back.chunks_exact_mut(tokens * c)
            .zip(slope.chunks_exact(c))
            .for_each(|(x, slope)| x[..c].copy_from_slice(slope));
        let mut whole = sums();
        let gradient = LayerGradient::from(whole.each_mut().map(Vec::as_mut_slice));
        let mut slopes = Slopes::new(WIDTHS, tokens, Threads::All);
        layer.backward(&mut back, span, &activations, &mut slopes, Some(gradient));
        let expected = [vec![result, back], whole.into()].concat();

        let mut layer = FirstTokenLayer::default();
        layer.set(arrays, 1e-6, Threads::One);
        // Room for more images, and what an earlier pass left there.
        let mut room = FirstTokenRoom::new(WIDTHS, images + 1, tokens);
        let mut found = Vec::new();
        for _ in 0..2 {
            let (mut result, mut back) = (vec![T::ZERO; images * c], vec![T::ONE; rows * c]);
            layer.forward(x, &mut result, &mut room);
            let mut whole = sums();
            let mut gradient = LayerGradient::from(whole.each_mut().map(Vec::as_mut_slice));
            layer.backward(&mut slope.to_vec(), &mut back, &mut room, &mut gradient);
            found = [vec![result, back], whole.into()].concat();
        }
        [expected, found]
    }

    fn compared<T: Real>(bound: f64) {
        // One token; more tokens than a register, and than a block of images has; no image at all.
        for (images, tokens) in [(3, 1), (5, 7), (9, 65), (2, 300), (0, 4)] {
            let x = numbers::<T>(images * tokens * WIDTHS[0], 20);
            let slope = numbers::<T>(images * WIDTHS[0], 21);
            let [expected, found] = both(&x, &slope, images, tokens);
            for (index, (expected, found)) in expected.iter().zip(&found).enumerate() {
                let size = expected.iter().fold(1e-3, |size, v| v.wide().abs().max(size));
                let far = expected.iter().zip(found).map(|(a, b)| (a.wide() - b.wide()).abs()).fold(0.0, f64::max);
                assert!(
                    expected.len() == found.len() && far < bound * size,
                    "{images}×{tokens}, {index}: {far:e} of {size:e}"
                );
            }
        }
    }

    #[test]
    fn it_is_the_whole_layer_at_the_first_token_forward_and_back() {
        compared::<f64>(1e-12);
        compared::<f32>(2e-5);
    }

    #[test]
    fn what_is_no_number_stays_in_its_image_and_the_smallest_numbers_count() {
        let ([c, _], images, tokens) = (WIDTHS, 3, 5);
        let slope = numbers::<f32>(images * c, 21);
        let mut x = numbers::<f32>(images * tokens * c, 20);
        let [_, clean] = both(&x, &slope, images, tokens);
        x[(tokens + 2) * c + 1] = f32::NAN;
        let [_, found] = both(&x, &slope, images, tokens);
        for (clean, found) in clean[..2].iter().zip(&found) {
            let width = clean.len() / images;
            for image in [0, 2] {
                assert_eq!(clean[image * width..][..width], found[image * width..][..width]);
            }
            assert!(found[width..][..width].iter().any(|v| v.is_nan()));
        }
        // A gradient of denormal numbers comes back as such.
        let small: Vec<f32> = slope.iter().map(|v| v * 1e-40).collect();
        let [expected, found] = both(&numbers::<f32>(images * tokens * c, 20), &small, images, tokens);
        assert!(found[1][..c].iter().any(|v| *v != 0.0 && v.abs() < f32::MIN_POSITIVE));
        assert!(expected[1].iter().zip(&found[1]).all(|(a, b)| (a - b).abs() < 1e-42));
    }
}

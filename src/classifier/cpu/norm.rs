//! Normalisation by the batch (Ioffe & Szegedy 2015) and by the channels of one position (Ba et al.
//! 2016), each with what commonly follows in the same pass over the memory.

use rayon::prelude::*;

use super::elementwise::masked;
use super::{Maps, Tape};
use crate::kernels::rows::add_rows;
use crate::kernels::{Buffer, Norm, Normalised, Real, Threads, kernel};

/// Rows that one thread sums at a time, in the format of the numbers; their sums are added in f64.
const ROWS: usize = 256;

/// What follows a normalisation.
#[derive(Debug, Clone, Copy)]
pub enum After<M> {
    /// Nothing.
    Nothing,
    /// ReLU.
    Relu,
    /// The sum with other maps, then ReLU.
    AddRelu(M),
}

impl<M> After<M> {
    /// What is added, and whether a ReLU follows.
    fn parts(self) -> (Option<M>, bool) {
        match self {
            Self::Nothing => (None, false),
            Self::Relu => (None, true),
            Self::AddRelu(other) => (Some(other), true),
        }
    }
}

/// What a batch was normalised by, channel by channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// Means.
    pub mean: Vec<f64>,
    /// Variances, without Bessel's correction.
    pub variance: Vec<f64>,
}

impl Statistics {
    /// 1/√(var + ε).
    fn inverse(&self, epsilon: f64) -> impl Iterator<Item = f64> {
        self.variance.iter().map(move |variance| (variance + epsilon).sqrt().recip())
    }
}

kernel! {
    add_squares<T, S>(rows: &'a [T], mean: &'a [T], sums: &'a mut [T]) {
        for row in rows.chunks_exact(mean.len()) {
            for (sum, (x, mean)) in sums.iter_mut().zip(row.iter().zip(mean)) {
                let far = *x - *mean;
                *sum = T::fused::<S>(far, far, *sum);
            }
        }
    }
}

kernel! {
    /// (x − mean)·scale + bias, then + other and ReLU where they follow.
    normalised<T, S>(x: &'a [T], channel: [&'a [T]; 3], other: Option<&'a [T]>, relu: bool, out: &'a mut [T]) {
        let [mean, scale, bias] = channel;
        let least = if relu { T::ZERO } else { T::LEAST };
        for (index, (x, out)) in x.chunks_exact(mean.len()).zip(out.chunks_exact_mut(mean.len())).enumerate() {
            let other = other.map(|other| &other[index * mean.len()..][..mean.len()]);
            for ((out, x), ((mean, scale), bias)) in out.iter_mut().zip(x).zip(mean.iter().zip(scale).zip(bias)) {
                *out = T::fused::<S>(*x - *mean, *scale, *bias);
            }
            for (out, other) in out.iter_mut().zip(other.unwrap_or_default()) {
                *out += *other;
            }
            for out in out.iter_mut() {
                *out = if *out < least { least } else { *out };
            }
        }
    }
}

kernel! {
    /// Σ slope and Σ slope·(x − mean) of every channel, one behind the other.
    moments<T, S>(x: &'a [T], slope: &'a [T], mean: &'a [T], sums: &'a mut [T]) {
        let (plain, along) = sums.split_at_mut(mean.len());
        for (x, slope) in x.chunks_exact(mean.len()).zip(slope.chunks_exact(mean.len())) {
            for (((x, slope), mean), (plain, along)) in
                x.iter().zip(slope).zip(mean).zip(plain.iter_mut().zip(along.iter_mut()))
            {
                *plain += *slope;
                *along = T::fused::<S>(*slope, *x - *mean, *along);
            }
        }
    }
}

kernel! {
    /// scale·slope − share − along·(x − mean), added or not.
    normalised_back<T, S>(x: &'a [T], slope: &'a [T], channel: [&'a [T]; 4], out: &'a mut [T], add: bool) {
        let [mean, scale, share, along] = channel;
        let rows = x.chunks_exact(mean.len()).zip(slope.chunks_exact(mean.len()));
        for ((x, slope), out) in rows.zip(out.chunks_exact_mut(mean.len())) {
            let channel = mean.iter().zip(scale).zip(share.iter().zip(along));
            for (((x, slope), out), ((mean, scale), (share, along))) in x.iter().zip(slope).zip(out).zip(channel) {
                let value = T::fused::<S>(*scale, *slope, -*share);
                let value = T::fused::<S>(-*along, *x - *mean, value);
                *out = if add { *out + value } else { value };
            }
        }
    }
}

/// Sums of `add` over pieces of some rows, in f64 and in their order.
fn sums<T: Real>(rows: usize, length: usize, add: impl Fn(usize, usize, &mut [T]) + Sync) -> Vec<f64> {
    let pieces = (0..rows.div_ceil(ROWS)).into_par_iter().map(|piece| {
        let mut sums = vec![T::ZERO; length];
        add(piece * ROWS, ((piece + 1) * ROWS).min(rows), &mut sums);
        sums
    });
    let mut total = vec![0.0; length];
    for sums in pieces.collect::<Vec<_>>() {
        total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum.wide());
    }
    total
}

fn narrow<T: Real>(x: impl IntoIterator<Item = f64>) -> Vec<T> {
    x.into_iter().map(T::of).collect()
}

/// Scale and shift of a normalisation.
#[derive(Debug, Clone, Copy)]
pub struct Affine<'a, T> {
    /// Identities of γ and β.
    pub parameters: [u64; 2],
    /// γ.
    pub gain: &'a [T],
    /// β.
    pub bias: &'a [T],
    /// Added to the variance.
    pub epsilon: f64,
}

impl<T: Real> Tape<T> {
    /// γ (x − mean)/√(var + ε) + β by the means and variances of the channels over all positions of
    /// all images, and what follows.
    pub fn batch_norm(&mut self, x: Maps, affine: Affine<'_, T>, after: After<Maps>) -> (Maps, Statistics) {
        let (rows, c, value) = (x.rows(), x.channels, self.value(x));
        let count = rows as f64;
        let mean = sums::<T>(rows, c, |from, to, sums| add_rows(&value[from * c..to * c], sums));
        let mean: Vec<f64> = mean.into_iter().map(|sum| sum / count).collect();
        let middle: Vec<T> = narrow(mean.iter().copied());
        let squares = |from: usize, to: usize, sums: &mut [T]| add_squares(&value[from * c..to * c], &middle, sums);
        let variance: Vec<f64> = sums::<T>(rows, c, squares).into_iter().map(|sum| sum / count).collect();
        let (batch, parameters) = (Statistics { mean, variance }, affine.parameters);
        let inverse: Vec<f64> = batch.inverse(affine.epsilon).collect();
        let (out, scale) = self.normalise(x, affine, &batch, after);
        let (other, relu) = after.parts();
        let step = BatchNormBackward { x, out, other, relu, parameters, mean: middle, inverse, scale };
        self.record(out, move |tape, slope| step.run(tape, slope));
        (out, batch)
    }

    /// [`Self::batch_norm`] by these means and variances, without a way back.
    pub fn norm_by(&mut self, x: Maps, affine: Affine<'_, T>, by: &Statistics, after: After<Maps>) -> Maps {
        self.normalise(x, affine, by, after).0
    }

    /// γ (x − mean)/√(var + ε) + β and what follows; and γ/√(var + ε).
    fn normalise(&mut self, x: Maps, affine: Affine<'_, T>, by: &Statistics, after: After<Maps>) -> (Maps, Vec<T>) {
        let (c, value) = (x.channels, self.value(x));
        let middle: Vec<T> = narrow(by.mean.iter().copied());
        let inverse = by.inverse(affine.epsilon);
        let scale: Vec<T> = narrow(inverse.zip(affine.gain).map(|(inverse, gain)| inverse * gain.wide()));
        let (other, relu) = after.parts();
        let mut out = self.take(x.len());
        let beside = other.map(|other| self.value(other));
        out.par_chunks_mut((ROWS * c).max(1)).enumerate().for_each(|(piece, out)| {
            let at = piece * ROWS * c;
            let other = beside.as_ref().map(|other| &other[at..][..out.len()]);
            normalised(&value[at..][..out.len()], [&middle, &scale, affine.bias], other, relu, out);
        });
        (self.push(out, Maps { slopes: true, ..x }), scale)
    }

    /// γ (x − mean)/√(var + ε) + β by the mean and variance of the channels (a multiple of 64) of
    /// every position of every image.
    pub fn layer_norm(&mut self, x: Maps, affine: Affine<'_, T>) -> Maps {
        let Affine { parameters, gain, bias, epsilon } = affine;
        let (c, norm, mut saved) = (x.channels, Norm::new(gain, bias, epsilon), Normalised::new(x.channels, x.rows()));
        let mut out = self.take(x.len());
        norm.forward(&self.value(x), &mut out, Some(saved.rows(x.rows())), Threads::All);
        let out = self.push(out, Maps { slopes: true, ..x });
        self.record(out, move |tape, slope| {
            let mut into = tape.zeros(x.len());
            let mut sums = parameters.map(|id| tape.sum(id, c, None));
            let gradient = sums.each_mut().map(|sum| &mut *sum.values);
            norm.backward(&slope, &saved, &mut into, gradient);
            tape.sums.extend(parameters.into_iter().zip(sums));
            tape.give(slope);
            tape.add_slope(x, into);
        });
        out
    }

    /// Adds to the gradient of one number a channel.
    fn add_channels(&mut self, parameter: u64, more: &[f64]) {
        let mut sum = self.sum(parameter, more.len(), None);
        sum.values.iter_mut().zip(more).for_each(|(sum, more)| *sum += T::of(*more));
        self.sums.insert(parameter, sum);
    }
}

/// The way back of a batch normalisation.
struct BatchNormBackward<T> {
    x: Maps,
    out: Maps,
    other: Option<Maps>,
    relu: bool,
    parameters: [u64; 2],
    mean: Vec<T>,
    /// 1/√(var + ε).
    inverse: Vec<f64>,
    /// γ/√(var + ε).
    scale: Vec<T>,
}

impl<T: Real> BatchNormBackward<T> {
    fn run(self, tape: &mut Tape<T>, mut slope: Buffer<T>) {
        let (rows, c, value) = (self.x.rows(), self.x.channels, tape.value(self.x));
        if self.relu {
            let out = tape.value(self.out);
            slope.par_chunks_mut(ROWS * c).zip(out.par_chunks(ROWS * c)).for_each(|(slope, out)| masked(out, slope));
        }
        let found = sums::<T>(rows, 2 * c, |from, to, sums| {
            moments(&value[from * c..to * c], &slope[from * c..to * c], &self.mean, sums);
        });
        let (plain, along) = found.split_at(c);
        let gain: Vec<f64> = along.iter().zip(&self.inverse).map(|(along, inverse)| along * inverse).collect();
        tape.add_channels(self.parameters[0], &gain);
        tape.add_channels(self.parameters[1], plain);
        let count = rows as f64;
        let share: Vec<T> = narrow(plain.iter().zip(&self.scale).map(|(plain, scale)| scale.wide() * plain / count));
        let along = along.iter().zip(&self.inverse).zip(&self.scale);
        let along: Vec<T> =
            narrow(along.map(|((along, inverse), scale)| scale.wide() * inverse * inverse * along / count));
        let (mut into, add) = tape.slope(self.x);
        into.par_chunks_mut((ROWS * c).max(1)).enumerate().for_each(|(piece, into)| {
            let (at, len) = (piece * ROWS * c, into.len());
            let channel = [&self.mean[..], &self.scale, &share, &along];
            normalised_back(&value[at..][..len], &slope[at..][..len], channel, into, add);
        });
        drop(value);
        tape.slopes[self.x.at] = Some(into);
        match self.other {
            Some(other) => tape.add_slope(other, slope),
            None => tape.give(slope),
        }
    }
}

//! Images as tokens: [image, token, channel].

use rayon::prelude::*;

use super::elementwise::sum_of;
use super::{Maps, Tape};
use crate::kernels::Real;
use crate::kernels::rows::add_rows;

/// Parameters with which patches become tokens.
#[derive(Debug, Clone, Copy)]
pub struct Embedding<'a, T> {
    /// Identities of the class token and of the positions.
    pub parameters: [u64; 2],
    /// The class token [channels].
    pub class: &'a [T],
    /// The positions [patches + 1, channels].
    pub positions: &'a [T],
}

impl<T: Real> Tape<T> {
    /// The class token and the patches, each plus its position: rows of all images, one image after
    /// the other.
    pub fn embed(&mut self, patches: Maps, embedding: Embedding<'_, T>) -> Maps {
        let (c, n, tokens) = (patches.channels, patches.images, patches.side[0] * patches.side[1] + 1);
        let Embedding { parameters, class, positions } = embedding;
        let value = self.value(patches);
        let mut out = self.take(n * tokens * c);
        out.par_chunks_mut(tokens * c).enumerate().for_each(|(image, out)| {
            for (token, (out, position)) in out.chunks_exact_mut(c).zip(positions.chunks_exact(c)).enumerate() {
                let row = if token == 0 { class } else { &value[((token - 1) * n + image) * c..][..c] };
                sum_of(row, position, out);
            }
        });
        drop(value);
        let out = self.push(out, Maps { side: [1; 2], images: n * tokens, slopes: true, ..patches });
        self.record(out, move |tape, slope| {
            let mut into = tape.take(patches.len());
            into.par_chunks_mut((n * c).max(1)).enumerate().for_each(|(patch, into)| {
                let rows = into.chunks_exact_mut(c).zip(slope.chunks_exact(tokens * c));
                rows.for_each(|(row, image)| row.copy_from_slice(&image[(patch + 1) * c..][..c]));
            });
            let mut sum = tape.sum(parameters[1], tokens * c, None);
            add_rows(&slope, &mut sum.values);
            tape.sums.insert(parameters[1], sum);
            let mut sum = tape.sum(parameters[0], c, None);
            slope.chunks_exact(tokens * c).for_each(|image| add_rows(&image[..c], &mut sum.values));
            tape.sums.insert(parameters[0], sum);
            tape.give(slope);
            tape.add_slope(patches, into);
        });
        out
    }
}

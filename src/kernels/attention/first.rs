//! Attention of the first token of every image to all of its tokens, and its reverse pass.

use super::{Attention, HEAD};
use crate::kernels::rows::{PAD, end_scores, softmax, sum};
use crate::kernels::{Real, kernel};

impl<T: Real> Attention<T> {
    /// Numbers of the attention weights of so many images: for each head one a token, padded.
    pub fn first_weights(self, images: usize) -> usize {
        images * self.heads * self.tokens.next_multiple_of(PAD)
    }

    /// softmax(q kᵀ·scale) v of one query `q` [image, head, 64] an image and `kv` [image, token, 2,
    /// head, 64], to `out` [image, head, 64]. Leaves its weights in `weights`.
    pub fn first(self, q: &[T], kv: &[T], weights: &mut [T], out: &mut [T]) {
        attend_first(self, q, kv, weights, out);
    }

    /// Gradients `slopes` of the query and of `kv`, from the gradient `slope` of [`Self::first`]'s
    /// result and the weights that it left.
    pub fn first_backward(self, [q, kv, weights]: [&[T]; 3], slope: &[T], slopes: [&mut [T]; 2]) {
        attend_first_backward(self, [q, kv, weights], slope, slopes);
    }
}

kernel! {
    attend_first<T, S, simd>(
        attention: Attention<T>,
        q: &'a [T],
        kv: &'a [T],
        weights: &'a mut [T],
        out: &'a mut [T],
    ) {
        let (tokens, width) = (attention.tokens, attention.width());
        let weights = weights.chunks_exact_mut(tokens.next_multiple_of(PAD));
        let heads = q.as_chunks::<HEAD>().0.iter().zip(out.as_chunks_mut::<HEAD>().0).zip(weights);
        for (index, ((q, out), weights)) in heads.enumerate() {
            let (image, head) = (index / attention.heads, index % attention.heads);
            let kv = &kv[image * tokens * 2 * width..][..tokens * 2 * width];
            for (weight, token) in weights.iter_mut().zip(kv.chunks_exact(2 * width)) {
                let key = &token[head * HEAD..][..HEAD];
                *weight = attention.scale * sum!(T, S, simd; q in q, key in key => T::times(simd, q, key));
            }
            end_scores(weights, tokens);
            let factor = softmax::<T, S>(simd, weights, tokens);
            *out = [T::ZERO; HEAD];
            for (weight, token) in weights.iter_mut().zip(kv.chunks_exact(2 * width)) {
                *weight = *weight * factor;
                for (out, value) in out.iter_mut().zip(&token[width + head * HEAD..][..HEAD]) {
                    *out = T::fused::<S>(*weight, *value, *out);
                }
            }
        }
    }
}

kernel! {
    attend_first_backward<T, S, simd>(
        attention: Attention<T>,
        saved: [&'a [T]; 3],
        slope: &'a [T],
        slopes: [&'a mut [T]; 2],
    ) {
        let ([q, kv, weights], [by_query, by_kv]) = (saved, slopes);
        let (tokens, width) = (attention.tokens, attention.width());
        let rows = q.as_chunks::<HEAD>().0.iter().zip(slope.as_chunks::<HEAD>().0);
        let rows = rows.zip(by_query.as_chunks_mut::<HEAD>().0);
        let weights = weights.chunks_exact(tokens.next_multiple_of(PAD));
        for (index, (((q, slope), by_query), weights)) in rows.zip(weights).enumerate() {
            let (image, head) = (index / attention.heads, index % attention.heads);
            let kv = &kv[image * tokens * 2 * width..][..tokens * 2 * width];
            let by_kv = &mut by_kv[image * tokens * 2 * width..][..tokens * 2 * width];
            let [key, value] = [head * HEAD, width + head * HEAD];
            // Gradient of every weight: where the gradient of its key will stand.
            let mut mean = T::ZERO;
            for ((weight, token), by_token) in
                weights.iter().zip(kv.chunks_exact(2 * width)).zip(by_kv.chunks_exact_mut(2 * width))
            {
                let value = &token[value..][..HEAD];
                by_token[key] = sum!(T, S, simd; slope in slope, value in value => T::times(simd, slope, value));
                mean = T::fused::<S>(*weight, by_token[key], mean);
            }
            *by_query = [T::ZERO; HEAD];
            for ((weight, token), by_token) in
                weights.iter().zip(kv.chunks_exact(2 * width)).zip(by_kv.chunks_exact_mut(2 * width))
            {
                let by_score = attention.scale * *weight * (by_token[key] - mean);
                for (sum, key) in by_query.iter_mut().zip(&token[key..][..HEAD]) {
                    *sum = T::fused::<S>(by_score, *key, *sum);
                }
                by_token[key..][..HEAD].iter_mut().zip(q).for_each(|(out, q)| *out = by_score * *q);
                by_token[value..][..HEAD].iter_mut().zip(slope).for_each(|(out, slope)| *out = *weight * *slope);
            }
        }
    }
}

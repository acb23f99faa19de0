//! What tokens read of each other, and how they move: kernels, and how they are launched.

use burn::tensor::Tensor;
use burn_cubecl::Cube;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::kernels::{Four, LANES, beneath, cubes, empty, in_place, total};
use super::{Bounds, Past};

/// [`super::attention`].
pub fn attention(qkv: &Tensor<3>, heads: usize, past: Option<&Past<'_>>, scale: f64) -> Option<Tensor<3>> {
    let [n, m, c] = qkv.dims();
    let (c, head) = (c / 3, c / 3 / heads);
    if head % 4 != 0 {
        return None;
    }
    let qkv = beneath(qkv)?;
    let (client, out) = (qkv.client.clone(), empty(&qkv, [n, m, c]));
    let (rows, first) = (m as u32, past.map_or(0, |past| past.first as u32));
    // Numbers of four between tokens, heads and images; keys and values begin at …
    let (keys, values, [token, of_head, image], [key, value]) = match past {
        None => (qkv.clone(), qkv.clone(), [3 * c, head, 3 * m * c], [c, 2 * c]),
        Some(past) => {
            let tokens = past.keys.dims()[2];
            let (keys, values) = (in_place(past.keys)?, in_place(past.values)?);
            remember::launch(
                &client,
                cubes(&out, n * m * c / 4),
                CubeDim::new_1d(LANES),
                qkv.clone().into_buffer_arg(),
                keys.clone().into_buffer_arg(),
                values.clone().into_buffer_arg(),
                rows,
                first,
                heads,
                head / 4,
                tokens,
            );
            (keys, values, [head, tokens * head, heads * tokens * head], [0, 0])
        }
    };
    let steps = [token / 4, of_head / 4, image / 4].map(|step| step as u32);
    attend::launch(
        &client,
        cubes(&out, n * m * heads),
        CubeDim::new_1d(LANES),
        qkv.into_buffer_arg(),
        keys.into_buffer_arg(),
        values.into_buffer_arg(),
        out.clone().into_buffer_arg(),
        rows,
        first,
        steps[0],
        steps[1],
        steps[2],
        scale as f32,
        key / 4,
        value / 4,
        heads,
        head / 4,
    );
    Some(Tensor::from_primitive::<Cube>(out))
}

/// Keys and values of the tokens of a pass, `qkv` [N, M, 3·heads·head], to their places in [N, heads, T, head].
#[cube(launch)]
fn remember(
    qkv: &[Four],
    keys: &mut [Four],
    values: &mut [Four],
    rows: u32,
    first: u32,
    #[comptime] heads: usize,
    #[comptime] head: usize,
    #[comptime] tokens: usize,
) {
    let width = comptime!(heads * head);
    if ABSOLUTE_POS * 3 < qkv.len() {
        let channel = ABSOLUTE_POS % width;
        let row = ABSOLUTE_POS / width;
        let image = row / rows as usize;
        let token = first as usize + row % rows as usize;
        let there = ((image * heads + channel / head) * tokens + token) * head + channel % head;
        keys[there] = qkv[row * 3 * width + width + channel];
        values[there] = qkv[row * 3 * width + 2 * width + channel];
    }
}

/// A unit computes what one token reads by one head: Σ_s e^{q·k_s·scale} v_s over tokens s up to its own, over the sum of the
/// weights, both relative to the largest so far.
#[cube(launch)]
fn attend(
    qkv: &[Four],
    keys: &[Four],
    values: &[Four],
    out: &mut [Four],
    rows: u32,
    first: u32,
    token_step: u32,
    head_step: u32,
    image_step: u32,
    scale: f32,
    #[comptime] key: usize,
    #[comptime] value: usize,
    #[comptime] heads: usize,
    #[comptime] head: usize,
) {
    let width = comptime!(heads * head);
    let row = ABSOLUTE_POS % rows as usize;
    let of_head = (ABSOLUTE_POS / rows as usize) % heads;
    let image = ABSOLUTE_POS / (rows as usize * heads);
    let token = image * rows as usize + row;
    let there = token * width + of_head * head;
    if there < out.len() {
        let mut query = Array::<Four>::new(head);
        let mut sums = Array::<Four>::new(head);
        #[unroll]
        for d in 0..head {
            query[d] = qkv[token * 3 * width + of_head * head + d] * Four::new(scale);
            sums[d] = Four::new(0.0f32);
        }
        let mut most = f32::new(-1e30f32);
        let mut weights = f32::new(0.0f32);
        let mut at = image * image_step as usize + of_head * head_step as usize;
        for _ in 0..first as usize + row + 1 {
            let mut product = Four::new(0.0f32);
            #[unroll]
            for d in 0..head {
                product = fma(query[d], keys[at + key + d], product);
            }
            let score = total(product);
            let larger = max(most, score);
            let (keep, weight) = ((most - larger).exp(), (score - larger).exp());
            most = larger;
            weights = weights * keep + weight;
            #[unroll]
            for d in 0..head {
                sums[d] = fma(Four::new(weight), values[at + value + d], sums[d] * Four::new(keep));
            }
            at += token_step as usize;
        }
        #[unroll]
        for d in 0..head {
            out[there + d] = sums[d] / Four::new(weights);
        }
    }
}

/// [`super::advance`].
pub fn advance(
    of_tokens: &Tensor<3>,
    z: &Tensor<3>,
    x: &Tensor<3>,
    first: usize,
    bounds: Option<Bounds>,
) -> Option<Tensor<2>> {
    let ([n, m, width], [_, tokens, p]) = (of_tokens.dims(), z.dims());
    if p % 4 != 0 {
        return None;
    }
    let (of_tokens, z, x) = (beneath(of_tokens)?, beneath(z)?, in_place(x)?);
    let (client, changes) = (z.client.clone(), empty(&z, [n, m]));
    let most = |bound: fn(Bounds) -> f64| bounds.map_or(0.0, bound) as f32;
    move_tokens::launch(
        &client,
        cubes(&changes, n * m),
        CubeDim::new_1d(LANES),
        of_tokens.into_buffer_arg(),
        z.into_buffer_arg(),
        x.into_buffer_arg(),
        changes.clone().into_buffer_arg(),
        m as u32,
        first as u32,
        most(|bounds| bounds.log_scale),
        most(|bounds| bounds.value),
        tokens,
        p / 4,
        width > p,
        bounds.is_some(),
    );
    Some(Tensor::from_primitive::<Cube>(changes))
}

/// A unit moves one token of one image.
#[cube(launch)]
fn move_tokens(
    of_tokens: &[Four],
    z: &[Four],
    x: &mut [Four],
    changes: &mut [f32],
    rows: u32,
    first: u32,
    log_scale: f32,
    value: f32,
    #[comptime] tokens: usize,
    #[comptime] p: usize,
    #[comptime] scales: bool,
    #[comptime] bounded: bool,
) {
    if ABSOLUTE_POS < changes.len() {
        let width = comptime!(if scales { 2 * p } else { p });
        let image = ABSOLUTE_POS / rows as usize;
        let there = (image * tokens + first as usize + ABSOLUTE_POS % rows as usize) * p;
        let here = ABSOLUTE_POS * width;
        let mut change = Four::new(0.0f32);
        for d in 0..p {
            let mut next = z[there + d];
            if comptime!(scales) {
                let a = within(of_tokens[here + d], log_scale, bounded);
                next *= a.exp();
            }
            next = within(next + of_tokens[here + comptime!(width - p) + d], value, bounded);
            change = max_nan(change, (next - x[there + d]).abs());
            x[there + d] = next;
        }
        let pairs = max_nan(change.extract(0usize), change.extract(1usize));
        let others = max_nan(change.extract(2usize), change.extract(3usize));
        changes[ABSOLUTE_POS] = max_nan(pairs, others);
    }
}

/// x, in ±`bound` where `bounded`; a NaN stays.
#[cube]
fn within(x: Four, bound: f32, #[comptime] bounded: bool) -> Four {
    if comptime!(bounded) { clamp_nan(x, Four::new(-bound), Four::new(bound)) } else { x }
}

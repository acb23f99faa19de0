//! Bilinear resampling, as `torch.nn.functional.interpolate(mode="bilinear", align_corners=False)`
//! does it, without smoothing.

/// Two neighbours of a position and the weight of the second.
struct Tap {
    near: usize,
    far: usize,
    weight: f64,
}

/// Between one size of image and another.
pub(super) struct Bilinear {
    /// Columns of the source.
    stride: usize,
    rows: Vec<Tap>,
    columns: Vec<Tap>,
}

impl Bilinear {
    /// From and to a height and a width, all at least 1.
    pub(super) fn new(from: [usize; 2], to: [usize; 2]) -> Self {
        Self { stride: from[1], rows: taps(from[0], to[0]), columns: taps(from[1], to[1]) }
    }

    /// Resamples one channel; calls `put` with every position of the result, row by row, and its
    /// value.
    pub(super) fn apply(&self, plane: &[f32], mut put: impl FnMut(usize, f64)) {
        let mix = |a: f64, b: f64, weight: f64| a * (1.0 - weight) + b * weight;
        let at = |row: usize, column: usize| f64::from(plane[row * self.stride + column]);
        for (i, row) in self.rows.iter().enumerate() {
            for (j, column) in self.columns.iter().enumerate() {
                let across = |r: usize| mix(at(r, column.near), at(r, column.far), column.weight);
                put(i * self.columns.len() + j, mix(across(row.near), across(row.far), row.weight));
            }
        }
    }
}

fn taps(from: usize, to: usize) -> Vec<Tap> {
    let scale = from as f64 / to as f64;
    let tap = |i: usize| {
        let position = ((i as f64 + 0.5) * scale - 0.5).max(0.0);
        let near = (position as usize).min(from - 1);
        Tap { near, far: (near + 1).min(from - 1), weight: position - near as f64 }
    };
    (0..to).map(tap).collect()
}

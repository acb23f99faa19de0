//! Where numbers lie: images as planes [N, C, H, W] or as rows of channels [N·H·W, C], and the
//! squeeze between the two resolutions of neighbouring levels. Channel c of position (y, x) becomes
//! channel 4c + 2(y mod 2) + x mod 2 of position (y/2, x/2).

use crate::data::ImageShape;
use crate::kernels::Real;

/// Sides and channels of a level.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
}

impl Grid {
    pub fn of(shape: ImageShape) -> Self {
        Self { height: shape.height, width: shape.width, channels: shape.channels }
    }

    pub fn positions(self) -> usize {
        self.height * self.width
    }

    /// Position and first channel that a position of an image is squeezed to.
    fn squeezed(self, position: usize) -> (usize, usize) {
        let (y, x) = (position / self.width, position % self.width);
        (y / 2 * (self.width / 2) + x / 2, y % 2 * 2 + x % 2)
    }
}

/// Squeezed rows [N·H/2·W/2, 4C] of planes.
pub(super) fn to_rows<T: Real>(planes: &[f64], shape: ImageShape, rows: &mut [T]) {
    let (grid, channels) = (Grid::of(shape), 4 * shape.channels);
    for (planes, rows) in planes.chunks_exact(shape.dims()).zip(rows.chunks_exact_mut(shape.dims())) {
        for (c, plane) in planes.chunks_exact(grid.positions()).enumerate() {
            for (position, value) in plane.iter().enumerate() {
                let (row, first) = grid.squeezed(position);
                rows[row * channels + 4 * c + first] = T::of(*value);
            }
        }
    }
}

/// Inverse of [`to_rows`].
pub(super) fn to_planes<T: Real>(rows: &[T], shape: ImageShape, planes: &mut [f64]) {
    let (grid, channels) = (Grid::of(shape), 4 * shape.channels);
    for (planes, rows) in planes.chunks_exact_mut(shape.dims()).zip(rows.chunks_exact(shape.dims())) {
        for (c, plane) in planes.chunks_exact_mut(grid.positions()).enumerate() {
            for (position, value) in plane.iter_mut().enumerate() {
                let (row, first) = grid.squeezed(position);
                *value = rows[row * channels + 4 * c + first].wide();
            }
        }
    }
}

/// Squeezes rows [N·H·W, C] of `grid` into [N·H/2·W/2, 4C]: the first half of the channels to
/// `active`, the second to `kept`.
pub(super) fn squeeze_rows<T: Real>(grid: Grid, images: usize, rows: &[T], active: &mut [T], kept: &mut [T]) {
    let half = 2 * grid.channels;
    for (at, row) in rows.chunks_exact(grid.channels).take(images * grid.positions()).enumerate() {
        let (position, first) = grid.squeezed(at % grid.positions());
        let to = (at / grid.positions() * grid.positions() / 4 + position) * half;
        let (low, high) = row.split_at(grid.channels / 2);
        for (c, (low, high)) in low.iter().zip(high).enumerate() {
            active[to + 4 * c + first] = *low;
            kept[to + 4 * c + first] = *high;
        }
    }
}

/// Inverse of [`squeeze_rows`].
pub(super) fn unsqueeze_rows<T: Real>(grid: Grid, images: usize, active: &[T], kept: &[T], rows: &mut [T]) {
    let half = 2 * grid.channels;
    for (at, row) in rows.chunks_exact_mut(grid.channels).take(images * grid.positions()).enumerate() {
        let (position, first) = grid.squeezed(at % grid.positions());
        let from = (at / grid.positions() * grid.positions() / 4 + position) * half;
        let (low, high) = row.split_at_mut(grid.channels / 2);
        for (c, (low, high)) in low.iter_mut().zip(high).enumerate() {
            *low = active[from + 4 * c + first];
            *high = kept[from + 4 * c + first];
        }
    }
}

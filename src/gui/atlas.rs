//! Thumbnails packed into large textures, so that thousands of images are a handful of draw calls.
//! A tile is uploaded when it is looked at and has changed.

use std::collections::BTreeMap;

use eframe::egui::{self, Color32, Mesh, Rect, pos2, vec2};

use super::paint::Sheet;
use crate::data::ImageShape;
use crate::device::ImageSource;

/// Side of a page, pixels.
const PAGE: usize = 1024;
/// The textures of one gallery.
#[derive(Default)]
pub struct Atlas {
    shape: Option<ImageShape>,
    pages: Vec<Sheet>,
    stamps: Vec<u64>,
}

impl Atlas {
    fn side(shape: ImageShape) -> usize {
        PAGE.max(shape.width).max(shape.height)
    }

    fn per_page(shape: ImageShape) -> usize {
        let side = Self::side(shape);
        (side / shape.width) * (side / shape.height)
    }

    /// Page and corner of image `index`.
    fn place(shape: ImageShape, index: usize) -> (usize, [usize; 2]) {
        let columns = Self::side(shape) / shape.width;
        let (page, cell) = (index / Self::per_page(shape), index % Self::per_page(shape));
        (page, [cell % columns * shape.width, cell / columns * shape.height])
    }

    /// Uploads outdated tiles among `visible`, at most `budget`. `picture` gives stamp and picture of an
    /// image. Returns how many are left.
    pub fn prepare<'a>(
        &mut self,
        ctx: &egui::Context,
        shape: ImageShape,
        (visible, budget): (&[usize], usize),
        picture: impl Fn(usize) -> Option<(u64, &'a ImageSource)>,
    ) -> usize {
        if self.shape != Some(shape) {
            *self = Self { shape: Some(shape), ..Self::default() };
        }
        let stale = visible.iter().filter_map(|&index| {
            let (stamp, source) = picture(index)?;
            (!self.holds(index, stamp)).then_some((index, stamp, source))
        });
        let stale: Vec<_> = stale.collect();
        let side = Self::side(shape);
        let mut by_page: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        for &(index, stamp, source) in stale.iter().take(budget) {
            let (page, corner) = Self::place(shape, index);
            by_page.entry(page).or_default().push((corner, source));
            if self.stamps.len() <= index {
                self.stamps.resize(index + 1, 0);
            }
            self.stamps[index] = stamp;
        }
        for (page, pictures) in by_page {
            while self.pages.len() <= page {
                self.pages.push(Sheet::new(ctx, &format!("atlas {}", self.pages.len()), [side, side]));
            }
            self.pages[page].put(shape, &pictures);
        }
        stale.len().saturating_sub(budget)
    }

    /// Whether the texture of image `index` is the one of this stamp.
    pub fn holds(&self, index: usize, stamp: u64) -> bool {
        self.stamps.get(index) == Some(&stamp)
    }

    /// Adds image `index` to the meshes of its page; `false` while it has no texture.
    pub fn add(&self, meshes: &mut Meshes, index: usize, rect: Rect, tint: Color32) -> bool {
        let Some(shape) = self.shape else { return false };
        if self.stamps.get(index).is_none_or(|&stamp| stamp == 0) {
            return false;
        }
        let (page, [x, y]) = Self::place(shape, index);
        let Some(texture) = self.pages.get(page) else { return false };
        let scale = 1.0 / Self::side(shape) as f32;
        let corner = pos2(x as f32, y as f32) * scale;
        let uv = Rect::from_min_size(corner, vec2(shape.width as f32, shape.height as f32) * scale);
        if meshes.0.len() <= page {
            meshes.0.resize_with(page + 1, || None);
        }
        let mesh = meshes.0[page].get_or_insert_with(|| Mesh::with_texture(texture.id()));
        mesh.add_rect_with_uv(rect, uv, tint);
        true
    }
}

/// One mesh per page.
#[derive(Default)]
pub struct Meshes(Vec<Option<Mesh>>);

impl Meshes {
    pub fn paint(self, painter: &egui::Painter) {
        for mesh in self.0.into_iter().flatten() {
            painter.add(mesh);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_do_not_overlap() {
        let shape = ImageShape { channels: 1, height: 30, width: 100 };
        let per_page = Atlas::per_page(shape);
        assert_eq!(per_page, 10 * 34);
        let mut seen = std::collections::HashSet::new();
        for index in 0..2 * per_page {
            let (page, [x, y]) = Atlas::place(shape, index);
            assert!(x + 100 <= PAGE && y + 30 <= PAGE && x % 100 == 0 && y % 30 == 0);
            assert!(seen.insert((page, x, y)));
        }
    }
}

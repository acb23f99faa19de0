//! Thumbnails packed into large textures, so that thousands of images are a handful of draw calls.
//! A tile is uploaded when it is looked at and has changed.

use std::collections::BTreeMap;

use eframe::egui::{self, Color32, Mesh, Rect, pos2, vec2};

use super::paint::Sheet;
use crate::data::ImageShape;
use crate::device::ImageSource;

/// Side of a page, pixels.
const PAGE: usize = 1024;
/// Bytes of textures that are kept beside those in view.
const ROOM: usize = 256 << 20;

/// A texture with the pictures in it.
struct Page {
    sheet: Sheet,
    /// Of each cell; 0 where there is no picture.
    stamps: Vec<u64>,
    /// The frame that showed it last.
    shown: u64,
}

/// The textures of one gallery.
#[derive(Default)]
pub struct Atlas {
    shape: Option<ImageShape>,
    /// By number; a gallery of which a part is looked at has those pages alone.
    pages: BTreeMap<usize, Page>,
    frame: u64,
}

impl Atlas {
    fn side(shape: ImageShape) -> usize {
        PAGE.max(shape.width).max(shape.height)
    }

    fn per_page(shape: ImageShape) -> usize {
        let side = Self::side(shape);
        (side / shape.width) * (side / shape.height)
    }

    /// Page and cell of image `index`.
    fn place(shape: ImageShape, index: usize) -> (usize, usize) {
        (index / Self::per_page(shape), index % Self::per_page(shape))
    }

    /// The corner of a cell, pixels.
    fn corner(shape: ImageShape, cell: usize) -> [usize; 2] {
        let columns = Self::side(shape) / shape.width;
        [cell % columns * shape.width, cell / columns * shape.height]
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
        self.frame += 1;
        for &index in visible {
            if let Some(page) = self.pages.get_mut(&Self::place(shape, index).0) {
                page.shown = self.frame;
            }
        }
        let stale = visible.iter().filter_map(|&index| {
            let (stamp, source) = picture(index)?;
            (!self.holds(index, stamp)).then_some((index, stamp, source))
        });
        let stale: Vec<_> = stale.collect();
        let side = Self::side(shape);
        let mut by_page: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        for &(index, stamp, source) in stale.iter().take(budget) {
            let (page, cell) = Self::place(shape, index);
            by_page.entry(page).or_default().push((cell, stamp, source));
        }
        for (number, pictures) in by_page {
            let page = self.pages.entry(number).or_insert_with(|| Page {
                sheet: Sheet::new(ctx, &format!("atlas {number}"), [side, side]),
                stamps: vec![0; Self::per_page(shape)],
                shown: 0,
            });
            page.shown = self.frame;
            for &(cell, stamp, _) in &pictures {
                page.stamps[cell] = stamp;
            }
            let placed: Vec<_> =
                pictures.into_iter().map(|(cell, _, source)| (Self::corner(shape, cell), source)).collect();
            page.sheet.put(shape, &placed);
        }
        self.free(ROOM / (4 * side * side));
        stale.len().saturating_sub(budget)
    }

    /// Drops the pages that were out of view for longest, until so many are left or all are in view.
    fn free(&mut self, most: usize) {
        while self.pages.len() > most {
            let oldest = self.pages.iter().min_by_key(|(_, page)| page.shown);
            let Some(number) = oldest.filter(|(_, page)| page.shown < self.frame).map(|(number, _)| *number) else {
                return;
            };
            self.pages.remove(&number);
        }
    }

    /// Stamp of the picture of image `index` and the texture it is in; `None` where it is in none.
    fn stamped(&self, shape: ImageShape, index: usize) -> Option<(u64, &Sheet)> {
        let (page, cell) = Self::place(shape, index);
        let page = self.pages.get(&page)?;
        let stamp = page.stamps.get(cell).copied().filter(|&stamp| stamp > 0)?;
        Some((stamp, &page.sheet))
    }

    /// Whether the texture of image `index` is the one of this stamp.
    pub fn holds(&self, index: usize, stamp: u64) -> bool {
        let held = self.shape.and_then(|shape| self.stamped(shape, index));
        held.is_some_and(|(held, _)| held == stamp)
    }

    /// Adds image `index` to the meshes of its page; `false` while it has no texture.
    pub fn add(&self, meshes: &mut Meshes, index: usize, rect: Rect, tint: Color32) -> bool {
        let Some(shape) = self.shape else { return false };
        let Some((_, texture)) = self.stamped(shape, index) else { return false };
        let (page, cell) = Self::place(shape, index);
        let [x, y] = Self::corner(shape, cell);
        let scale = 1.0 / Self::side(shape) as f32;
        let corner = pos2(x as f32, y as f32) * scale;
        let uv = Rect::from_min_size(corner, vec2(shape.width as f32, shape.height as f32) * scale);
        let mesh = meshes.0.entry(page).or_insert_with(|| Mesh::with_texture(texture.id()));
        mesh.add_rect_with_uv(rect, uv, tint);
        true
    }
}

/// One mesh per page.
#[derive(Default)]
pub struct Meshes(BTreeMap<usize, Mesh>);

impl Meshes {
    pub fn paint(self, painter: &egui::Painter) {
        for mesh in self.0.into_values() {
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
            let (page, cell) = Atlas::place(shape, index);
            let [x, y] = Atlas::corner(shape, cell);
            assert!(x + 100 <= PAGE && y + 30 <= PAGE && x % 100 == 0 && y % 30 == 0);
            assert!(seen.insert((page, x, y)));
        }
    }

    /// 256² pixels, 16 images a page of 4 MB: 10,000 images are 625 pages.
    #[test]
    fn only_pages_that_are_looked_at_take_memory_and_those_in_view_stay() {
        let shape = ImageShape { channels: 1, height: 256, width: 256 };
        let (ctx, mut atlas) = (egui::Context::default(), Atlas::default());
        let source = ImageSource::Host(vec![7; shape.dims()]);
        let look = |atlas: &mut Atlas, visible: &[usize]| {
            assert_eq!(atlas.prepare(&ctx, shape, (visible, 64), |_| Some((1, &source))), 0);
            assert!(visible.iter().all(|&index| atlas.holds(index, 1)), "what is in view is there");
            // egui keeps what it was given until a painter has taken it.
            drop(ctx.tex_manager().write().take_delta());
        };
        look(&mut atlas, &[9_999]);
        assert_eq!(atlas.pages.len(), 1, "none for the images before it");
        for page in 0..70 {
            look(&mut atlas, &[16 * page, 9_999]);
            assert!(atlas.pages.len() <= ROOM / (4 * PAGE * PAGE), "{}", atlas.pages.len());
        }
        assert!(!atlas.holds(0, 1) && atlas.holds(16 * 60, 1), "those out of view for longest go first");
        let many: Vec<usize> = (0..70).map(|page| 16 * page).collect();
        for part in [&many[..60], &many] {
            look(&mut atlas, part);
        }
        assert_eq!(atlas.pages.len(), 70, "all that are in view");
    }
}

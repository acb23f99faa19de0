//! How every image in view is shown: exact at the present τ, as a draft for it, or as it was before.

use std::collections::{BTreeMap, BTreeSet};

use crate::device::ImageSource;
use crate::gui::context::Cx;
use crate::gui::frame_times::ViewedGallery;
use crate::gui::guidance;
use crate::gui::selection::Source;
use crate::gui::session::gallery::Gallery;
use crate::gui::session::keys::Between;

/// What is not exact among the images in view.
#[derive(Default)]
pub struct Shown {
    drafts: BTreeMap<usize, Between>,
    before: BTreeSet<usize>,
    figures_before: BTreeSet<usize>,
}

impl Shown {
    /// Of the images in view. Images from outside have no τ.
    pub fn new(cx: &Cx, gallery: &Gallery, visible: &[usize]) -> Self {
        let mut shown = Self::default();
        if cx.view.source == Source::Outside {
            return shown;
        }
        let tau = cx.prefs.tau;
        // Key pictures are of the samples themselves, not of a look.
        let plain = guidance::options(cx.session, cx.prefs).is_none();
        for &index in visible.iter().filter(|index| !gallery.is_of(**index, tau)) {
            let draft = plain.then(|| cx.session.keys.between(index, tau)).flatten();
            match draft.filter(|_| cx.session.keys.shape() == gallery.shape()) {
                Some(draft) => drop(shown.drafts.insert(index, draft)),
                None if gallery.draft(index).is_none() && gallery.get(index).is_some() => {
                    shown.before.insert(index);
                }
                None => {}
            }
        }
        let of_before = |index: &&usize| gallery.get(**index).is_some() && !gallery.has_figures_of_now(**index);
        shown.figures_before.extend(visible.iter().filter(of_before));
        shown
    }

    /// Stamp and picture of image `index`.
    pub fn picture<'a>(&'a self, gallery: &'a Gallery, index: usize) -> Option<(u64, &'a ImageSource)> {
        let draft = self.drafts.get(&index).map(|draft| (draft.stamp, &draft.pixels));
        draft.or_else(|| gallery.picture(index))
    }

    /// Whether image `index` is a draft for the present τ.
    pub fn is_draft(&self, index: usize) -> bool {
        self.drafts.contains_key(&index)
    }

    /// Whether image `index` is of the knobs before.
    pub fn is_before(&self, index: usize) -> bool {
        self.before.contains(&index)
    }

    /// Whether label, decision and posterior of image `index` are of the knobs before. T and label noise move those, and not
    /// the picture.
    pub fn has_figures_before(&self, index: usize) -> bool {
        self.is_before(index) || self.figures_before.contains(&index)
    }

    /// For the measurement.
    pub fn viewed(&self, tau: f64, visible: &[usize], gallery: &Gallery) -> ViewedGallery {
        let newest = visible.iter().filter(|index| self.is_draft(**index) || gallery.is_of(**index, tau)).count();
        ViewedGallery { tau, visible: visible.len(), newest, drafts: self.drafts.len() }
    }
}

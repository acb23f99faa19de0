//! State of the view: cursor, selection, visible images. It ends with the window.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use super::background::{BackgroundTask, Field};
use super::chosen_cells::ChosenCells;
use super::data_table::DataTable;
use super::frame_times::ViewedGallery;
use super::landmarks::Landmarks;
use super::prefs::{Prefs, Sort};
use super::primary_action::PrimaryAction;
use super::selection::{Click, Side, Source, Step};
use super::session::Session;
use super::session::gallery::{Arrangement, Gallery, arrange};
use crate::error::Result;
use crate::oracle::label_noise::LabelNoise;
use crate::task::ExternalImage;
use crate::units::ClassId;
use crate::worker::protocol::{JobId, Sketch, Subject};
use crate::worker::what_if::Pin;

/// Least width at which both sides leave room for the panels, points.
const BOTH_SIDES: f32 = 940.0;

/// A drawing of the panel Draw.
#[derive(Debug, Clone)]
pub struct Drawing {
    /// It.
    pub sketch: Arc<Sketch>,
    /// Whether its evidence map is wanted.
    pub evidence: bool,
    /// When the pen had moved.
    pub moved: Instant,
}

/// What is looked at.
#[derive(Debug, Default)]
pub struct View {
    /// Which images.
    pub source: Source,
    /// Order, direction and label filter of the world's samples, while images from outside are shown.
    pub order: Option<(Sort, bool, Option<ClassId>)>,
    /// The image the inspector shows.
    pub cursor: Option<usize>,
    /// Samples that are not there yet are not to be made.
    pub halted: bool,
    /// How often the user chose an image.
    pub choices: usize,
    pub selection: BTreeSet<usize>,
    /// Where a range begins.
    anchor: Option<usize>,
    /// Columns of the gallery as last painted.
    pub columns: usize,
    /// Rows of a page as last painted.
    pub page_rows: usize,
    /// Images in view as last painted.
    pub in_view: Vec<usize>,
    /// How they were shown in the frame being painted, for the measurement.
    pub viewed: Option<ViewedGallery>,
    /// Drafts among them, as last painted.
    pub drafts: usize,
    /// Height of the list of jobs as last painted, points; 0 where there is none.
    pub jobs_height: f32,
    /// The jobs whose failures panels told in the last frame.
    pub told: BTreeSet<JobId>,
    /// What a disk or a thread is waited for, where that takes long.
    pub late: Option<String>,
    /// The gallery should bring the cursor into view.
    pub reveal: bool,
    /// The text of the field for a target Bayes error.
    pub target: String,
    /// What is wrong with it.
    pub target_complaint: Option<String>,
    /// The text of the field for label noise.
    pub label_noise: String,
    /// The label noise that it was last brought in line with; none for no noise.
    pub label_noise_seen: Option<LabelNoise>,
    /// What is wrong with it.
    pub label_noise_complaint: Option<String>,
    /// The file that it names, while it is read.
    pub label_noise_file: BackgroundTask<Result<LabelNoise>>,
    /// Classes a and b of the evidence map; `None` for the two most probable ones.
    pub evidence: Option<(ClassId, ClassId)>,
    /// The evidence map was painted in this frame: it is wanted for these classes.
    pub evidence_wanted: Option<(ClassId, ClassId)>,
    /// The drawing that was painted in this frame.
    pub drawing: Option<Drawing>,
    /// The canvas has the focus: it has an undo of its own.
    pub draws: bool,
    /// Where a measurement moves the pen, shares of width and height.
    pub pen: Option<[f32; 2]>,
    /// The run of an experiment that is shown.
    pub run: Option<PathBuf>,
    /// The cells of it that are shown; none for the newest.
    pub cells: ChosenCells,
    /// Other runs drawn beside it.
    pub compared: BTreeSet<PathBuf>,
    /// A path the user chose for a panel's field.
    pub picked: Option<(Field, PathBuf)>,
    /// The preset the form of experiments is to be filled with.
    pub preset: Option<&'static str>,
    /// Where the controls lie that the tour points at.
    pub landmarks: Landmarks,
    /// The panel in front and its button.
    pub primary: PrimaryAction,
    /// The side that shows where there is room for one alone.
    pub front: Side,
    /// There is room for one alone.
    narrow: bool,
    /// The plot whose numbers are shown as a table.
    pub table: Option<DataTable>,
    /// Pinned images.
    pins: Vec<Pin>,
    /// The world that was looked at last (`OracleInfo::world_id`).
    world: String,
    arrangement: Arc<Arrangement>,
    arranged: Option<Key>,
}

/// What an arrangement depends on.
type Key = (u64, Source, Sort, bool, Option<usize>);

impl View {
    /// The images on show.
    pub fn gallery<'a>(&self, session: &'a Session) -> Option<&'a Gallery> {
        match self.source {
            Source::World => Some(&session.gallery),
            Source::Outside => session.external.as_ref().map(|external| &external.gallery),
        }
    }

    /// Their order, computed again only when something it depends on changed.
    pub fn arrangement(&mut self, session: &Session, prefs: &Prefs) -> Arc<Arrangement> {
        let gallery = self.gallery(session);
        let revision = gallery.map_or(0, Gallery::revision);
        let key = (revision, self.source, prefs.sort, prefs.descending, prefs.class_filter);
        if self.arranged != Some(key) {
            let make = |gallery| arrange(gallery, prefs.sort, prefs.descending, prefs.class_filter);
            self.arrangement = Arc::new(gallery.map(make).unwrap_or_default());
            self.arranged = Some(key);
        }
        self.arrangement.clone()
    }

    /// Shows a run, its newest cell at first.
    pub fn show_run(&mut self, run: Option<PathBuf>) {
        (self.run, self.cells) = (run, ChosenCells::default());
    }

    /// Pinned images of the open world. One from outside that the engine has not looked at goes with the images it was
    /// among.
    pub fn pins(&mut self, session: &Session) -> &mut Vec<Pin> {
        self.enter(session);
        self.pins.retain(|pin| pin.x.is_some() || pin.subject.is_open(session.open_set()));
        &mut self.pins
    }

    /// Forgets what was pinned and typed in another world.
    pub fn enter(&mut self, session: &Session) {
        let here = session.oracle.as_ref().map_or_else(String::new, |oracle| oracle.world_id());
        if self.world != here {
            self.world = here;
            self.pins.clear();
            self.target.clear();
            self.target_complaint = None;
            (self.label_noise, self.label_noise_seen) = Default::default();
            self.forget_label_noise();
            // Painted in the frame before: they name images and classes of the other world.
            (self.evidence, self.evidence_wanted, self.drawing) = (None, None, None);
        }
    }

    /// What was said of a law of label noise is of one that is wanted no more, and so is its file.
    pub fn forget_label_noise(&mut self) {
        self.label_noise_complaint = None;
        self.label_noise_file = BackgroundTask::default();
    }

    /// Shows images from elsewhere.
    pub fn show(&mut self, source: Source) {
        if self.source != source {
            self.source = source;
            self.forget_selection();
        }
    }

    /// Returns which sides show in a window of this width, points. Without room for both, the front
    /// one.
    pub fn sides(&mut self, prefs: &Prefs, width: f32) -> [bool; 2] {
        self.narrow = width < BOTH_SIDES;
        let alone = self.narrow && prefs.world_card && prefs.inspector;
        let shows = |side, wanted: bool| wanted && (!alone || self.front == side);
        [shows(Side::WorldCard, prefs.world_card), shows(Side::Inspector, prefs.inspector)]
    }

    /// Whether the window has no room for both sides.
    pub fn narrow(&self) -> bool {
        self.narrow
    }

    /// Shows a side, or hides it where it shows.
    pub fn toggle(&mut self, prefs: &mut Prefs, side: Side) {
        let both = prefs.world_card && prefs.inspector;
        let wanted = match side {
            Side::WorldCard => &mut prefs.world_card,
            Side::Inspector => &mut prefs.inspector,
        };
        // One that is wanted but behind the other comes to the front.
        *wanted = !*wanted || (self.narrow && both && self.front != side);
        if *wanted {
            self.front = side;
        }
    }

    /// Nothing selected, nothing inspected.
    pub fn forget_selection(&mut self) {
        self.selection.clear();
        self.cursor = None;
        self.anchor = None;
    }

    /// What the inspector should show.
    pub fn subject(&self, session: &Session, prefs: &Prefs) -> Option<Subject> {
        let index = self.cursor?;
        Some(match self.source {
            Source::World => Subject::Sample { spec: prefs.spec(), index },
            Source::Outside => Subject::External(ExternalImage { set: session.open_set()?, index }),
        })
    }

    /// A click on image `index`.
    pub fn click(&mut self, index: usize, click: Click) {
        match click {
            Click::Only => {
                self.selection = BTreeSet::from([index]);
                self.anchor = Some(index);
            }
            Click::Toggle => {
                if !self.selection.remove(&index) {
                    self.selection.insert(index);
                }
                self.anchor = Some(index);
            }
            Click::Range => {
                let place = |i: usize| self.arrangement.order.iter().position(|&other| other == i);
                let from = self.anchor.and_then(place).or_else(|| place(index));
                if let (Some(from), Some(to)) = (from, place(index)) {
                    self.selection = self.arrangement.order[from.min(to)..=from.max(to)].iter().copied().collect();
                }
            }
        }
        self.cursor = Some(index);
    }

    /// The user's own click.
    pub fn choose(&mut self, index: usize, click: Click) {
        self.click(index, click);
        self.choices += 1;
        self.front = Side::Inspector;
    }

    /// Moves the cursor through the arrangement.
    pub fn walk(&mut self, step: Step, extend: bool) {
        let Some(last) = self.arrangement.order.len().checked_sub(1) else { return };
        let at = self.cursor.and_then(|cursor| self.arrangement.order.iter().position(|&i| i == cursor));
        let columns = self.columns.max(1);
        let page = columns * self.page_rows.max(1);
        let to = match (at, step) {
            (_, Step::Home) | (None, _) => 0,
            (_, Step::End) => last,
            (Some(at), Step::Left) => at.saturating_sub(1),
            (Some(at), Step::Right) => at + 1,
            (Some(at), Step::Up) => at.checked_sub(columns).unwrap_or(at),
            (Some(at), Step::Down) => {
                if at + columns <= last {
                    at + columns
                } else {
                    at
                }
            }
            (Some(at), Step::PageUp) => at.saturating_sub(page),
            (Some(at), Step::PageDown) => at + page,
        };
        let index = self.arrangement.order[to.min(last)];
        self.choose(index, if extend { Click::Range } else { Click::Only });
        self.reveal = true;
    }

    pub fn select_all(&mut self) {
        self.selection = self.arrangement.order.iter().copied().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::library;

    #[test]
    fn what_was_painted_of_another_world_is_not_wanted_in_this_one() {
        let mut session = Session::default();
        session.oracle = library::find("mnist").and_then(|world| world.info().ok()).map(Arc::new);
        let mut view = View::default();
        view.enter(&session);
        (view.evidence, view.evidence_wanted) = (Some((1, 2)), Some((8, 9)));
        (view.label_noise, view.label_noise_complaint) = ("pair:2".into(), Some("no probability".into()));
        view.enter(&session);
        assert_eq!(view.evidence_wanted, Some((8, 9)), "it is the same world");
        session.oracle = library::find("cells").and_then(|world| world.info().ok()).map(Arc::new);
        view.enter(&session);
        assert!(view.evidence.is_none() && view.evidence_wanted.is_none() && view.drawing.is_none());
        assert!(view.label_noise.is_empty() && view.label_noise_complaint.is_none());
    }
}

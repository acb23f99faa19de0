//! Compares what the engine should compute with the last requests: every change is asked for once.

mod bayes;

use std::time::{Duration, Instant};

use crate::device::DeviceChoice;
use crate::flow::sampling::SamplerOptions;
use crate::oracle::world::{LabelLaw, SampleSpec, Settings};
use crate::units::{ClassId, Tau};
use crate::worker::protocol::{
    Asked, EvidenceRequest, GalleryRequest, InspectRequest, Job, JobId, KeyOrigin, SketchRequest, Subject,
};
use crate::worker::runs::WatchRequest;

use super::engine::Engine;
use super::gliding::Glide;
use super::guidance;
use super::inspector::MORPH;
use super::panels;
use super::prefs::Prefs;
use super::selection::Source;
use super::session::Session;
use super::session::jobs::JobView;
use super::view::View;

/// The last requests to the engine.
#[derive(Default)]
pub struct RequestTracker {
    generation: u64,
    gallery: Option<GalleryKnobs>,
    inspection: Option<(Subject, Settings, Option<SamplerOptions>)>,
    evidence: Option<(Subject, Settings, (ClassId, ClassId))>,
    sketch: Option<(u64, Settings, bool)>,
    /// The job that opened the images from outside, and the knobs they were asked for at.
    outside: Option<(Option<JobId>, Settings)>,
    readout: Option<(Tau, LabelLaw)>,
    curve: Option<([f64; 2], LabelLaw)>,
    hardness: Option<(Tau, LabelLaw)>,
    ranking: Option<LabelLaw>,
    glide: Glide,
    kept: Option<LabelLaw>,
    surveyed: Option<LabelLaw>,
    watched: WatchRequest,
    oracle: String,
    device: DeviceChoice,
    device_apart: bool,
}

/// What a gallery depends on: samples, knobs, look, and whether no more are to be made.
type GalleryKnobs = (SampleSpec, Settings, Option<SamplerOptions>, bool);

/// What pictures of these samples depend on, beside τ.
fn key_origin(session: &Session, spec: &SampleSpec, settings: &Settings) -> KeyOrigin {
    let world = session.oracle.as_ref().map_or_else(String::new, |oracle| oracle.world_id());
    KeyOrigin::new(world, spec, settings.prior.clone())
}

impl RequestTracker {
    /// The engine was started with the oracle and device of these.
    pub fn new(prefs: &Prefs) -> Self {
        let mut requests = Self::default();
        requests.accept(prefs);
        requests
    }

    /// Records oracle and device as requested: no job is needed.
    pub fn accept(&mut self, prefs: &Prefs) {
        self.oracle.clone_from(&prefs.oracle);
        (self.device, self.device_apart) = (prefs.device, prefs.device_apart);
    }

    /// Forgets the requests: everything is asked for again.
    pub fn forget(&mut self) {
        *self = Self {
            generation: self.generation,
            watched: std::mem::take(&mut self.watched),
            oracle: std::mem::take(&mut self.oracle),
            device: self.device,
            device_apart: self.device_apart,
            ..Self::default()
        };
    }

    /// Sends the requests that have changed. Jobs wait until nothing is dragged: `quiet`.
    pub fn sync(&mut self, engine: &dyn Engine, session: &mut Session, prefs: &Prefs, view: &mut View, quiet: bool) {
        if (self.device, self.device_apart) != (prefs.device, prefs.device_apart) {
            (self.device, self.device_apart) = (prefs.device, prefs.device_apart);
            #[cfg(feature = "wgpu")]
            crate::device::keep_apart(prefs.device_apart);
            submit(engine, session, Job::UseDevice(prefs.device));
        }
        if self.oracle != prefs.oracle {
            self.oracle.clone_from(&prefs.oracle);
            submit(engine, session, Job::OpenOracle(prefs.oracle.clone()));
        }
        self.watch_runs(engine, session, prefs, view);
        // Preferences fit the open oracle only once it is there.
        if session.oracle.is_none() || prefs.prior.len() != session.class_names().len() {
            return;
        }
        self.ask_for_bayes(engine, session, prefs, view.primary.shows(panels::bayes::ID), quiet);
        self.ask_for_gallery(engine, session, prefs, view);
        if quiet && view.source == Source::Outside {
            self.refresh_outside(engine, session, prefs);
        }
        self.ask_for_inspection(engine, session, prefs, view);
        self.ask_for_evidence(engine, session, prefs, view);
        self.ask_for_sketch(engine, session, prefs, view);
        session.asked = self.generation;
    }

    /// Run folders are looked at while one of their panels shows.
    fn watch_runs(&mut self, engine: &dyn Engine, session: &mut Session, prefs: &Prefs, view: &View) {
        session.runs.know(&prefs.runs);
        let [one_run, all_cells] =
            [panels::experiments::ID, panels::monitor::ID].map(|panel| view.primary.shows(panel));
        let wanted = match one_run || all_cells {
            true => {
                WatchRequest { folders: prefs.runs.clone(), cells: view.run.clone().zip(view.cells.ids()), all_cells }
            }
            false => WatchRequest::default(),
        };
        if std::mem::take(&mut session.runs.look_now) || self.watched != wanted {
            self.watched = wanted.clone();
            engine.watch(wanted);
        }
    }

    /// The next running number.
    fn number(&mut self) -> u64 {
        self.generation += 1;
        self.generation
    }

    fn ask_for_gallery(&mut self, engine: &dyn Engine, session: &mut Session, prefs: &Prefs, view: &mut View) {
        let (spec, settings) = (prefs.spec(), prefs.settings());
        let look = guidance::options(session, prefs);
        // A moved knob, another world or another device ends a halt: there is nothing to show yet.
        if self.gallery.as_ref().is_none_or(|(a, b, c, _)| (a, b, c) != (&spec, &settings, &look)) {
            view.halted = false;
        }
        let wanted = (spec, settings.clone(), look, view.halted);
        if self.stays(engine, session, view, &wanted) {
            return;
        }
        self.gallery = Some(wanted);
        session.unanswered.remove(&Asked::Gallery);
        self.generation += 1;
        session.gallery.expect(self.generation, spec.n);
        session.gallery.expect_of(key_origin(session, &spec, &settings), settings.clone());
        session.gallery.show_only(look);
        let mut first: Vec<usize> = match view.source {
            Source::World => view.cursor.into_iter().chain(view.in_view.iter().copied()).collect(),
            Source::Outside => Vec::new(),
        };
        first.retain(|&index| index < spec.n);
        if view.source == Source::World {
            view.selection.retain(|&index| index < spec.n);
            view.cursor = view.cursor.filter(|&index| index < spec.n);
        }
        let (generation, halted) = (self.generation, view.halted);
        engine.show(GalleryRequest { generation, spec, settings, first, look, halted });
    }

    /// Whether the gallery is the one that was asked for last, or waits until τ rests while drafts follow it.
    fn stays(&mut self, engine: &dyn Engine, session: &mut Session, view: &View, wanted: &GalleryKnobs) -> bool {
        let (spec, settings, look, _) = wanted;
        let origin = key_origin(session, spec, settings);
        session.keys.expect(&origin);
        let at = (origin, settings.tau);
        let drafts = view.source == Source::World && look.is_none();
        let asked = self.gallery.as_ref() == Some(wanted) && !self.glide.gave_up();
        if asked {
            self.glide.rest();
            if drafts && (session.gallery.complete() || session.gallery.answers(&view.in_view)) {
                self.glide.ask(engine, session, view, at);
            }
            return true;
        }
        let at_another_tau = |(a, b, c, d): &GalleryKnobs| {
            let settings = Settings { tau: settings.tau, ..b.clone() };
            (a, &settings, c, d) == (spec, &wanted.1, look, &wanted.3)
        };
        let alone = drafts && self.gallery.as_ref().is_some_and(at_another_tau);
        // Of the τ before, not even what is in view has come.
        let outrun = !view.in_view.is_empty() && !session.gallery.answers(&view.in_view);
        if alone && session.keys.follow(&at.0, outrun) && self.glide.moves(settings.tau, Instant::now()) {
            self.glide.ask(engine, session, view, at);
            return true;
        }
        self.glide.rest();
        false
    }

    /// How soon something is to be asked for though nothing moves.
    pub fn due(&self) -> Option<Duration> {
        self.glide.rests_in()
    }

    /// Images from outside get their posteriors again when a knob has moved.
    fn refresh_outside(&mut self, engine: &dyn Engine, session: &mut Session, prefs: &Prefs) {
        // What another world makes of them is asked when it is open.
        if session.is_opening() {
            return;
        }
        let settings = prefs.settings();
        let Some(external) = &session.external else { return };
        let wanted = Some((session.outside.opened_by, settings.clone()));
        if external.settings.as_ref() == Some(&settings) || self.outside == wanted {
            return;
        }
        let again = session.read_outside_again(settings.clone());
        // What came from neither files nor the clipboard cannot be had again once the engine has lost it.
        if again.is_none() && external.settings.is_none() {
            return;
        }
        self.outside = wanted;
        // Those that are still to come are of knobs of before.
        let before = session.refreshing.clone();
        cancel(engine, session, |job| before.contains(&job.id));
        let id = submit(engine, session, again.unwrap_or(Job::RateAgain { settings }));
        session.refreshes_outside(id);
    }

    fn ask_for_inspection(&mut self, engine: &dyn Engine, session: &mut Session, prefs: &Prefs, view: &View) {
        let Some(subject) = view.subject(session, prefs) else { return };
        let lost = session.external.as_ref().is_none_or(|external| external.settings.is_none());
        if view.source == Source::Outside && lost {
            return;
        }
        let wanted = (subject, prefs.settings(), guidance::options(session, prefs));
        if self.inspection.as_ref() == Some(&wanted) {
            return;
        }
        let (subject, settings, look) = wanted.clone();
        self.inspection = Some(wanted);
        session.unanswered.remove(&Asked::Inspection);
        self.generation += 1;
        let taus = match subject {
            Subject::Sample { .. } => MORPH.iter().filter_map(|&tau| Tau::new(tau).ok()).collect(),
            Subject::External(_) => Vec::new(),
        };
        engine.inspect(InspectRequest { generation: self.generation, subject, settings, taus, look });
    }

    /// The evidence map follows the inspected image while it shows. At τ = 0 there is none.
    fn ask_for_evidence(&mut self, engine: &dyn Engine, session: &mut Session, prefs: &Prefs, view: &View) {
        let (Some(classes), Some(subject)) = (view.evidence_wanted, view.subject(session, prefs)) else { return };
        let lost = session.external.as_ref().is_none_or(|external| external.settings.is_none());
        let settings = prefs.settings();
        if classes.0.max(classes.1) >= session.class_names().len() {
            return;
        }
        if settings.tau.get() == 0.0 || (view.source == Source::Outside && lost) {
            return;
        }
        let wanted = Some((subject.clone(), settings.clone(), classes));
        if self.evidence == wanted {
            return;
        }
        self.evidence = wanted;
        session.unanswered.remove(&Asked::Evidence);
        let (generation, (a, b)) = (self.number(), classes);
        engine.explain(EvidenceRequest { generation, subject, settings, a, b });
    }
}

/// The newest drawing, while its panel shows.
impl RequestTracker {
    fn ask_for_sketch(&mut self, engine: &dyn Engine, session: &mut Session, prefs: &Prefs, view: &View) {
        let Some(drawing) = view.drawing.as_ref().filter(|_| prefs.tau > 0.0) else { return };
        let wanted = Some((drawing.sketch.revision, prefs.settings(), drawing.evidence));
        if self.sketch == wanted {
            return;
        }
        let drawn = self.sketch.as_ref().is_none_or(|(revision, ..)| *revision != drawing.sketch.revision);
        self.sketch = wanted;
        session.unanswered.remove(&Asked::Sketch);
        // Where a knob has moved, the pen has not.
        let moved = if drawn { drawing.moved } else { Instant::now() };
        let (generation, sketch, evidence) = (self.number(), drawing.sketch.clone(), drawing.evidence);
        engine.sketch(SketchRequest { generation, sketch, settings: prefs.settings(), evidence, moved });
    }
}

/// Stops the jobs that `meant` selects and that have not ended.
pub fn cancel(engine: &dyn Engine, session: &mut Session, meant: impl Fn(&JobView) -> bool) {
    for job in session.jobs.iter_mut().filter(|job| !job.ended() && meant(job)) {
        engine.cancel(job.id);
        job.stopping = true;
    }
}

/// Submits a job and records it in the session. What was set for the world that is shown is not carried out in another.
pub fn submit(engine: &dyn Engine, session: &mut Session, job: Job) -> JobId {
    let shown = session.oracle.as_ref().filter(|_| job.is_of_the_oracle_shown());
    let id = engine.submit(job.clone(), shown.map(|oracle| oracle.world_id()));
    session.submitted(id, &job);
    id
}

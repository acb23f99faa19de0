//! Questions about the Bayes error: those that follow the knobs, and those that are asked for.

use std::time::Instant;

use super::{RequestTracker, cancel, submit};
use crate::bayes::sampling::DrawKey;
use crate::gui::engine::Engine;
use crate::gui::prefs::Prefs;
use crate::gui::session::Session;
use crate::gui::session::bayes::{Comparison, Curve};
use crate::oracle::world::LabelLaw;
use crate::task::Task;
use crate::units::Tau;
use crate::worker::bayes::protocol::{At, CurveQuestion, Question, RankingQuestion, TargetQuestion};
use crate::worker::protocol::Job;
use crate::worker::sampling::{self, FindTau, SurveyWorld};

/// What the Bayes error depends on.
fn knobs(prefs: &Prefs) -> (Tau, LabelLaw) {
    let settings = prefs.settings();
    (settings.tau, settings.label_law())
}

impl RequestTracker {
    /// The readout follows the knobs at once. The panel's figures are asked for while it shows,
    /// class hardness and ranking when nothing is being dragged.
    pub(super) fn ask_for_bayes(
        &mut self,
        engine: &dyn Engine,
        session: &mut Session,
        prefs: &Prefs,
        panel: bool,
        quiet: bool,
    ) {
        let (tau, law) = knobs(prefs);
        if session.bayes.must_be_sampled() == Some(true) {
            return self.ask_for_kept(engine, session, law);
        }
        let wanted = Some((tau, law.clone()));
        if self.readout != wanted {
            self.readout.clone_from(&wanted);
            let (generation, now) = (self.number(), Instant::now());
            session.bayes.readout.expect(generation, now);
            session.bayes.information.expect(generation, now);
            engine.ask(Question::Readout(At { generation, tau, law: law.clone() }));
        }
        let curve = Some((prefs.tau_range, law.clone()));
        if panel && self.curve != curve {
            self.curve = curve;
            let generation = self.number();
            let taus = grid(prefs.tau_range);
            let points = vec![None; taus.len()];
            let asked = taus.iter().map(|tau| tau.get()).collect();
            let value = Curve { taus: asked, points, law: Some(law.clone()) };
            session.bayes.expect_curve(generation, value);
            engine.ask(Question::Curve(CurveQuestion { generation, taus, law: law.clone() }));
        }
        if panel && quiet && tau.get() > 0.0 && self.hardness != wanted {
            self.hardness = wanted;
            let generation = self.number();
            session.bayes.expect_hardness(generation, tau.get(), law.clone());
            engine.ask(Question::Hardness(At { generation, tau, law: law.clone() }));
        }
        if panel && quiet && self.ranking.as_ref() != Some(&law) {
            self.ranking = Some(law.clone());
            let generation = self.number();
            session.bayes.expect_rankings(generation, law.clone());
            engine.ask(Question::Ranking(RankingQuestion { generation, law }));
        }
    }

    /// Of a world that must be sampled: what was found before, for each prior once. With T ≠ 1 or label noise nothing is kept.
    fn ask_for_kept(&mut self, engine: &dyn Engine, session: &mut Session, law: LabelLaw) {
        self.forget_what_was_replaced(session);
        let new = law.labels_are_classes() && self.kept.as_ref() != Some(&law);
        let Some(oracle) = session.oracle.as_ref().filter(|_| new) else { return };
        let world = oracle.world_id();
        let generation = self.number();
        session.bayes.expect_survey(generation);
        self.kept = Some(law.clone());
        let prior = law.prior;
        engine.ask(Question::Kept { generation, key: DrawKey { world, prior, seed: sampling::SEED } });
    }

    /// Where the survey of another law has taken the place of what was kept, that is asked for again when its law is back. Not
    /// while a survey is under way: each of its rounds would be replaced, and replace.
    fn forget_what_was_replaced(&mut self, session: &Session) {
        if session.tasks.get::<SurveyWorld>().is_some_and(|view| view.under_way()) {
            return;
        }
        let shown = session.bayes.survey.as_ref().map(|survey| &survey.law);
        if self.surveyed.as_ref() != shown {
            self.surveyed = shown.cloned();
            self.kept.take_if(|kept| shown.is_some_and(|shown| shown != kept));
        }
    }

    /// Starts the survey of a world that must be sampled, in place of one under way.
    pub fn survey(&self, engine: &dyn Engine, session: &mut Session, prefs: &Prefs) {
        let (tau, law) = knobs(prefs);
        replace(engine, session, SurveyWorld { tau, law });
    }

    /// Asks for the τ of a Bayes error. What must be sampled is a task, and sets no τ by itself.
    pub fn target(&mut self, engine: &dyn Engine, session: &mut Session, prefs: &Prefs, error: f64) {
        let law = prefs.settings().label_law();
        if session.bayes.must_be_sampled() == Some(true) {
            return replace(engine, session, FindTau { target: error, law });
        }
        let generation = self.number();
        session.bayes.expect_target(generation, error, law.clone());
        engine.ask(Question::Target(TargetQuestion { generation, error, law }));
    }

    /// Asks for the comparison of methods at the present knobs.
    pub fn compare(&mut self, engine: &dyn Engine, session: &mut Session, prefs: &Prefs) {
        let generation = self.number();
        let (tau, law) = knobs(prefs);
        let value = Comparison { tau: tau.get(), law: Some(law.clone()), rows: Vec::new() };
        session.bayes.comparison.expect(generation, value);
        engine.ask(Question::Compare(At { generation, tau, law }));
    }

    pub fn figure1(&mut self, engine: &dyn Engine, session: &mut Session) {
        let generation = self.number();
        session.bayes.figure1.expect(generation, Vec::new());
        engine.ask(Question::Figure1 { generation });
    }
}

/// Points of the curve E(τ).
const CURVE_POINTS: usize = 81;

/// Temperatures evenly apart in log τ.
fn grid([low, high]: [f64; 2]) -> Vec<Tau> {
    let step = (high / low).ln() / (CURVE_POINTS - 1) as f64;
    (0..CURVE_POINTS).filter_map(|i| Tau::new(low * (step * i as f64).exp()).ok()).collect()
}

/// Submits a task in place of the one of its type that is under way.
fn replace<T: Task>(engine: &dyn Engine, session: &mut Session, task: T) {
    let before = session.tasks.get::<T>().map(|view| view.job);
    cancel(engine, session, |job| Some(job.id) == before);
    submit(engine, session, Job::task(task));
}

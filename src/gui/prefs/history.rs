//! Undo and redo of what the user has set.

use super::Prefs;

/// Undo and redo of [`Prefs`]. One step is every change between two quiet moments.
#[derive(Debug, Default)]
pub struct History {
    past: Vec<Prefs>,
    future: Vec<Prefs>,
    settled: Option<Prefs>,
}

/// Steps that are kept.
const DEPTH: usize = 200;

impl History {
    /// Called when nothing is being dragged.
    pub fn settle(&mut self, prefs: &Prefs) {
        match &mut self.settled {
            Some(settled) if settled == prefs => {}
            Some(settled) => {
                let before = std::mem::replace(settled, prefs.clone());
                if keep_the_open(&before, prefs) == *prefs {
                    return;
                }
                self.past.push(before);
                self.past.drain(..self.past.len().saturating_sub(DEPTH));
                self.future.clear();
            }
            None => self.settled = Some(prefs.clone()),
        }
    }

    pub fn undo(&mut self, prefs: &mut Prefs) -> bool {
        self.settle(prefs);
        Self::step(&mut self.past, &mut self.future, &mut self.settled, prefs)
    }

    pub fn redo(&mut self, prefs: &mut Prefs) -> bool {
        self.settle(prefs);
        Self::step(&mut self.future, &mut self.past, &mut self.settled, prefs)
    }

    /// Returns whether there is a step to take back, and one to take again.
    pub fn available(&self) -> (bool, bool) {
        (self.undoes().is_some(), self.redoes().is_some())
    }

    /// What a step back would change, in words.
    pub fn undoes(&self) -> Option<String> {
        Self::told(&self.past, self.settled.as_ref()?)
    }

    /// What a step forward would change, in words.
    pub fn redoes(&self) -> Option<String> {
        Self::told(&self.future, self.settled.as_ref()?)
    }

    fn told(from: &[Prefs], now: &Prefs) -> Option<String> {
        let (_, state) = newest(from, now)?;
        Some(changed(&state, now))
    }

    fn step(from: &mut Vec<Prefs>, to: &mut Vec<Prefs>, settled: &mut Option<Prefs>, prefs: &mut Prefs) -> bool {
        let Some((place, state)) = newest(from, prefs) else { return false };
        to.push(std::mem::replace(prefs, state));
        // Those that change nothing here are steps of another world, and lie between.
        to.extend(from.drain(place + 1..).rev());
        from.truncate(place);
        *settled = Some(prefs.clone());
        true
    }
}

/// The newest state that changes anything, by its place, as it would be set: what another world had set is not its.
fn newest(from: &[Prefs], now: &Prefs) -> Option<(usize, Prefs)> {
    let mut states = from.iter().enumerate().rev().map(|(place, state)| (place, keep_the_open(state, now)));
    states.find(|(_, state)| state != now)
}

/// The settings that differ, by their names.
fn changed(a: &Prefs, b: &Prefs) -> String {
    let one = |name, differ: bool| differ.then_some(name);
    let names = [
        one("τ", a.tau != b.tau),
        one("T", a.smoothing != b.smoothing),
        one("class prior", a.prior != b.prior),
        one("label noise", a.label_noise != b.label_noise),
        one("seed", a.seed != b.seed),
        one("number of samples", a.n != b.n),
        one("order of the gallery", (a.sort, a.descending) != (b.sort, b.descending)),
        one("label filter", a.class_filter != b.class_filter),
        one("thumbnail size", a.thumbnail != b.thumbnail),
        one("theme", a.theme != b.theme),
        one("scale of the bars", a.log_bars != b.log_bars),
        one("axes of the curve", (a.tau_range, a.log_tau, a.log_error) != (b.tau_range, b.log_tau, b.log_error)),
        one("look of the pictures", a.guidance != b.guidance),
        one("evidence map", (a.evidence_overlay, a.evidence_strength) != (b.evidence_overlay, b.evidence_strength)),
        one("side panels", (a.world_card, a.inspector) != (b.world_card, b.inspector)),
    ];
    names.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Undo changes neither oracle, runs, device, the look of saved figures nor the size of the window.
fn keep_the_open(state: &Prefs, now: &Prefs) -> Prefs {
    let mut state = state.clone();
    state.oracle.clone_from(&now.oracle);
    state.taus.clone_from(&now.taus);
    if state.world != now.world {
        // τ was another world's.
        state.world.clone_from(&now.world);
        state.tau = now.tau;
    }
    (state.device, state.device_apart, state.products) = (now.device, now.device_apart, now.products);
    state.machines.clone_from(&now.machines);
    state.oracles.clone_from(&now.oracles);
    state.runs.clone_from(&now.runs);
    (state.toured, state.scale, state.on_paper) = (now.toured, now.scale, now.on_paper);
    if state.prior.len() != now.prior.len() {
        state.prior.clone_from(&now.prior);
        state.class_filter = now.class_filter;
    }
    // A matrix of another number of classes is another world's, too.
    if state.label_noise.as_ref().is_some_and(|noise| noise.check(now.prior.len()).is_err()) {
        state.label_noise.clone_from(&now.label_noise);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::label_noise::LabelNoise;

    #[test]
    fn undo_takes_back_knobs_but_not_the_oracle() {
        let mut history = History::default();
        let mut prefs = Prefs::default();
        history.settle(&prefs);
        prefs.tau = 2.0;
        history.settle(&prefs);
        prefs.oracle = "other".into();
        history.settle(&prefs);
        assert!(history.undo(&mut prefs));
        assert_eq!((prefs.tau, prefs.oracle.as_str()), (1.0, "other"));
        assert!(!history.undo(&mut prefs));
        assert!(history.redo(&mut prefs));
        assert_eq!(prefs.tau, 2.0);
        prefs.tau = 3.0;
        history.settle(&prefs);
        assert!(!history.redo(&mut prefs));
    }

    #[test]
    fn label_noise_of_another_world_does_not_come_back() {
        let mut history = History::default();
        let noise = Some(LabelNoise::by_class(vec![0.1; 3]).unwrap());
        let mut prefs = Prefs { prior: vec![1.0 / 3.0; 3], label_noise: noise.clone(), ..Prefs::default() };
        history.settle(&prefs);
        prefs.tau = 2.0;
        history.settle(&prefs);
        // Another world, of more classes.
        prefs.fit(5);
        assert_eq!(prefs.label_noise, None);
        history.settle(&prefs);
        assert!(history.undo(&mut prefs));
        assert_eq!((prefs.prior.len(), prefs.label_noise.as_ref()), (5, None));
        // In a world of as many classes it does.
        let mut history = History::default();
        let mut prefs = Prefs { prior: vec![1.0 / 3.0; 3], label_noise: noise.clone(), ..Prefs::default() };
        history.settle(&prefs);
        prefs.label_noise = None;
        history.settle(&prefs);
        assert!(history.undo(&mut prefs));
        assert_eq!(prefs.label_noise, noise);
    }

    /// τ is the world's own: what was set in one world is no step in the next, and is one again in its own.
    #[test]
    fn steps_that_change_nothing_here_are_neither_offered_nor_spent() {
        let mut history = History::default();
        let mut prefs = Prefs { world: "mnist".into(), ..Prefs::default() };
        history.settle(&prefs);
        prefs.tau = 1.5;
        history.settle(&prefs);
        prefs.enter("fashion");
        history.settle(&prefs);
        assert_eq!((history.undoes(), history.available()), (None, (false, false)));
        assert!(!history.undo(&mut prefs));
        prefs.enter("mnist");
        history.settle(&prefs);
        assert_eq!((prefs.tau, history.undoes().as_deref()), (1.5, Some("τ")));
        assert!(history.undo(&mut prefs));
        assert_eq!(prefs.tau, 1.0);
    }

    #[test]
    fn a_step_behind_one_that_changes_nothing_is_taken() {
        let mut history = History::default();
        let mut prefs = Prefs { world: "mnist".into(), ..Prefs::default() };
        history.settle(&prefs);
        prefs.seed = 3;
        history.settle(&prefs);
        prefs.tau = 1.5;
        history.settle(&prefs);
        prefs.enter("fashion");
        history.settle(&prefs);
        assert_eq!((history.undoes().as_deref(), history.available()), (Some("seed"), (true, false)));
        assert!(history.undo(&mut prefs) && !history.undo(&mut prefs));
        assert_eq!((prefs.seed, prefs.tau, history.redoes().as_deref()), (0, 1.0, Some("seed")));
        assert!(history.redo(&mut prefs) && !history.redo(&mut prefs));
        assert_eq!((prefs.seed, prefs.tau), (3, 1.0));
    }

    #[test]
    fn a_step_is_called_by_what_it_changes() {
        let mut history = History::default();
        let mut prefs = Prefs::default();
        history.settle(&prefs);
        (prefs.tau, prefs.seed) = (2.0, 3);
        history.settle(&prefs);
        assert_eq!((history.undoes().as_deref(), history.redoes()), (Some("τ, seed"), None));
        history.undo(&mut prefs);
        assert_eq!((history.undoes(), history.redoes().as_deref()), (None, Some("τ, seed")));
        // The window's size, the tour and what was open are no settings of the world.
        (prefs.scale, prefs.toured, prefs.oracles) = (150, true, vec!["/a".into()]);
        history.settle(&prefs);
        assert_eq!(history.undoes(), None);
    }
}

//! The tour of the first time: a sample, a τ and a posterior, chosen, moved and read with the real
//! controls.
//!
//! It lies beside what it points at, or below everything where there is no room for that, blocks
//! nothing, and can be left at any time; once taken or left it is offered no more, and the menu
//! Help has it.

mod card;

use super::bayes_error_view;
use super::command::Command;
use super::context::Cx;
use super::format;
use super::inspected::{Inspected, inspected, name};
use super::landmarks::Landmark;
use super::panels;
use super::selection::{Click, Side, Source};

/// τ that the tour sets for those who do not; the other where it is that already.
const OTHER_TAUS: [f64; 2] = [1.6, 1.0];
/// Probabilities below this are not named.
const WORTH_NAMING: f64 = 0.005;

/// Where the tour is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    World,
    Sample,
    Tau,
    Posterior,
}

/// What a step shows, and the control it points at.
struct StepText {
    landmark: Option<Landmark>,
    title: &'static str,
    about: &'static str,
}

/// In the order of [`Step::ALL`].
const STEPS: [StepText; 4] = [
    StepText {
        landmark: None,
        title: "A world in which the truth is known",
        about: "A flow was trained on images and frozen. From now on it is the truth: it draws every image you see, and \
                 what is called exact here follows from its own densities. Three steps show how to read it.",
    },
    StepText {
        landmark: Some(Landmark::Gallery),
        title: "Choose a sample",
        about: "Each picture was drawn from this world: first a class, then an image of it. A red outline marks those \
                 whose label is not the most probable class. Click one, or walk with the arrow keys.",
    },
    StepText {
        landmark: Some(Landmark::Tau),
        title: "Move the base temperature τ",
        about: "τ multiplies the standard deviation of the noise that images are made from. Larger τ, and classes blur into \
                 one another. Drag the slider: the latents stay, so your sample morphs.",
    },
    StepText {
        landmark: Some(Landmark::Posterior),
        title: "Read its exact posterior",
        about: "p(y|x) = π_y p(x|y) / p(x), from the flow's own densities: no network's opinion, and true for this world \
                 to rounding. Its entropy is the doubt that no classifier can take away.",
    },
];

impl Step {
    const ALL: [Self; 4] = [Self::World, Self::Sample, Self::Tau, Self::Posterior];

    fn text(self) -> &'static StepText {
        &STEPS[self as usize]
    }

    fn number(self) -> String {
        format!("Tour, {} of {}", self as usize + 1, Self::ALL.len())
    }

    fn after(self) -> Option<Self> {
        Self::ALL.get(self as usize + 1).copied()
    }

    fn before(self) -> Option<Self> {
        Self::ALL.get((self as usize).checked_sub(1)?).copied()
    }
}

/// The tour; not under way by default.
#[derive(Debug, Default)]
pub struct Tour {
    step: Option<Step>,
    /// τ when the tour began.
    tau: f64,
    /// How often an image had been chosen then.
    choices: usize,
    /// Who goes on by the keyboard finds the focus on the next button.
    follow: bool,
}

/// What a step waits for.
enum State {
    Free,
    /// The engine.
    Waiting(String),
    /// The user. What a button does instead, and its command.
    Asking(&'static str),
    /// It is done: what came of it.
    Done(String),
}

impl Tour {
    /// Shows the first step.
    pub fn begin(&mut self) {
        self.step = Some(Step::World);
    }

    /// Ends the tour. Returns whether it was under way.
    pub fn end(&mut self) -> bool {
        self.step.take().is_some()
    }

    fn state(&self, cx: &Cx, step: Step) -> State {
        if cx.session.oracle.is_none() {
            let opening = cx.session.stuck.is_none();
            let text =
                if opening { "The world is being opened…" } else { "No oracle is open: choose one on the left." };
            return if step == Step::World { State::Free } else { State::Waiting(text.into()) };
        }
        match step {
            Step::World => State::Free,
            Step::Sample if cx.session.gallery_count() == 0 => {
                State::Waiting("The first samples are being made…".into())
            }
            // The window chooses one by itself when it opens.
            Step::Sample if cx.view.choices == self.choices => State::Asking("Choose the most ambiguous one in view"),
            Step::Sample => State::Done(chosen(cx)),
            Step::Tau if cx.prefs.tau == self.tau => State::Asking("Move it for me"),
            Step::Tau => State::Done(moved(cx)),
            Step::Posterior => posterior(cx),
        }
    }

    /// Brings what the step points at into view.
    fn enter(&mut self, cx: &mut Cx, step: Step) {
        if self.step == Some(Step::World) {
            (self.tau, self.choices) = (cx.prefs.tau, cx.view.choices);
        }
        self.step = Some(step);
        match step {
            Step::World => {}
            Step::Sample => {
                cx.commands.push(Command::ShowPanel(panels::gallery::ID));
                cx.commands.push(Command::ShowSource(Source::World));
            }
            Step::Tau => (cx.prefs.world_card, cx.view.front) = (true, Side::WorldCard),
            Step::Posterior => (cx.prefs.inspector, cx.view.front) = (true, Side::Inspector),
        }
        if let Some(landmark) = step.text().landmark {
            cx.view.landmarks.reveal(landmark);
        }
    }
}

/// Does the step for the user.
fn perform(cx: &mut Cx, step: Step) {
    match step {
        Step::Sample | Step::Posterior => {
            let doubt = |index: usize| cx.session.gallery.get(index).map(|slot| slot.tile.posterior.entropy_nats);
            let known = cx.view.in_view.iter().filter_map(|&index| Some((index, doubt(index)?)));
            if let Some((index, _)) = known.max_by(|a, b| a.1.total_cmp(&b.1)) {
                cx.view.choose(index, Click::Only);
            }
        }
        Step::Tau => {
            let [first, second] = OTHER_TAUS;
            cx.prefs.tau = if cx.prefs.tau == first { second } else { first };
        }
        Step::World => {}
    }
}

fn chosen(cx: &Cx) -> String {
    let Some(Inspected { index, tile, .. }) = inspected(cx.session, cx.prefs, cx.view) else {
        return "A sample is chosen: it is being made.".into();
    };
    let who = name(cx.session, cx.view.source, index);
    format!("{who} is chosen. Its label is {}.", cx.session.class_name(tile.label))
}

fn moved(cx: &Cx) -> String {
    let tau = format!("τ is now {}.", format::sig4(cx.prefs.tau));
    let readout = cx.session.bayes.readout.fresh();
    match readout.and_then(|readout| readout.outcome.as_ref().ok()) {
        Some(estimate) => {
            let error = bayes_error_view::percent(estimate);
            format!("{tau} The Bayes error of this world is {error}: no classifier errs less.")
        }
        None => tau,
    }
}

/// The posterior of the chosen sample at the present τ, in words.
fn posterior(cx: &Cx) -> State {
    let Some(cursor) = cx.view.cursor else {
        return State::Asking("Choose the most ambiguous one in view");
    };
    let of_now = cx.view.source == Source::Outside || cx.session.gallery.asks_for(cx.prefs.tau);
    let fresh = of_now && cx.view.gallery(cx.session).is_some_and(|gallery| gallery.answers(&[cursor]));
    let Some(Inspected { index, tile, .. }) = inspected(cx.session, cx.prefs, cx.view).filter(|_| fresh) else {
        return State::Waiting("Its posterior at this τ is being computed…".into());
    };
    let p = &tile.posterior;
    let mut order: Vec<usize> = (0..p.probabilities.len()).collect();
    order.sort_by(|&a, &b| p.probabilities[b].total_cmp(&p.probabilities[a]));
    let share = |class: &usize| {
        let percent = 100.0 * p.probabilities[*class];
        format!("{percent:.1} % for {}", cx.session.class_name(*class))
    };
    let named = order.iter().take(2).filter(|class| p.probabilities[**class] >= WORTH_NAMING);
    let shares = named.map(share).collect::<Vec<_>>().join(", ");
    let who = name(cx.session, cx.view.source, index);
    let (tau, entropy) = (format::sig4(cx.prefs.tau), format::sig4(p.entropy_nats));
    State::Done(format!("{who} at τ = {tau}: {shares}. Its entropy is {entropy} nats."))
}

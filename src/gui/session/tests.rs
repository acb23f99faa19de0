//! Jobs that fail, and an engine that starts again.

use super::*;
use crate::bayes::{Badge, ClassHardness, Estimate, Figure, Method, PairErrors};
use crate::data::{Fit, ImageShape, Split, Way};
use crate::device::{Candidate, DeviceChoice};
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::library;
use crate::oracle::pictures::Fits;
use crate::oracle::posterior::Prior;
use crate::oracle::world::{LabelLaw, Settings};
use crate::task::ExternalImage;
use crate::units::Seed;
use crate::worker::bayes::protocol::Study;
use crate::worker::protocol::{Pasted, Subject};

fn report() -> DeviceReport {
    let used = Candidate {
        choice: DeviceChoice::Cpu,
        name: "CPU".into(),
        driver: "flex".into(),
        software: false,
        place: None,
    };
    DeviceReport { asked: DeviceChoice::Auto, used, reason: "no GPU was found".into() }
}

#[test]
fn a_failed_job_is_noticed_once_and_an_oracle_that_will_not_open_is_told() {
    let mut session = Session::default();
    let now = Instant::now();
    assert_eq!(session.take(Event::Device(report()), now), Effect::AskAgain);
    session.submitted(7, &Job::OpenOracle("broken".into()));
    let outcome = Outcome::Failed("broken: no oracle".into());
    assert_eq!(session.take(Event::JobEnded { id: 7, outcome }, now), Effect::OracleRefused);
    assert_eq!(session.take_notices().len(), 1);
    assert!(session.take_notices().is_empty());
    assert!(session.jobs.get(7).unwrap().failed());
    assert!(session.log.iter().any(|entry| entry.text.contains("broken")));
}

#[test]
fn what_opens_late_has_its_own_name_and_not_that_of_the_next_one() {
    let mut session = Session::opening("mnist");
    let now = Instant::now();
    session.submitted(1, &Job::OpenOracle("/worlds/large".into()));
    session.submitted(2, &Job::OpenOracle("/worlds/broken".into()));
    let info = Arc::new(library::find("cells").unwrap().info().unwrap());
    session.take(Event::Oracle { name: "/worlds/large".into(), info }, now);
    assert_eq!(session.oracle_name, "/worlds/large");
    session.take(Event::JobEnded { id: 1, outcome: Outcome::Done("open".into()) }, now);
    let outcome = Outcome::Failed("broken: no oracle".into());
    assert_eq!(session.take(Event::JobEnded { id: 2, outcome }, now), Effect::OracleRefused);
    assert_eq!(session.oracle_name, "/worlds/large");
    // The one that is open has a name of its own.
    assert_eq!(["/worlds/large", "/worlds/broken"].map(|oracle| session.called(oracle)), ["cells", "broken"]);
}

#[test]
fn a_restart_asks_for_the_gallery_again() {
    let mut session = Session::default();
    let restarted = Event::Restarted { reason: "index out of bounds".into() };
    assert_eq!(session.take(restarted, Instant::now()), Effect::AskAgain);
    assert_eq!(session.take_notices()[0].level, Level::Error);
}

#[test]
fn a_new_judgement_forgets_what_was_said_of_the_images_of_the_one_before() {
    let mut session = Session::default();
    session.asks_judged_images(5, "Worst images".into());
    let outcome = Outcome::Failed("these images are of another world than mnist".into());
    session.take(Event::JobEnded { id: 5, outcome }, Instant::now());
    assert!(matches!(session.exchange.images, Some((5, Some(_)))));
    let (split, seed) = (Split::Test, Seed(0));
    let judge = JudgeModels { dataset: "/data".into(), split, candidates: Vec::new(), seed };
    session.submitted(6, &Job::task(judge));
    assert_eq!(session.exchange.images, None);
}

/// Images from outside, all of one name.
fn external(job: JobId, set: u64, settings: &Settings) -> Event {
    let (name, shape) = ("pasted".into(), ImageShape { channels: 1, height: 1, width: 1 });
    let (ids, tiles, verdicts, pictures) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (settings, labelled, own_knobs) = (settings.clone(), false, false);
    Event::External { job, set, name, shape, ids, tiles, labelled, settings, own_knobs, verdicts, pictures }
}

#[test]
fn the_same_images_at_other_knobs_are_the_same_and_others_of_their_name_are_not() {
    let (mut session, now) = (Session::default(), Instant::now());
    let settings = Settings::default_for(2);
    let (picture, fit) = (Pasted(Arc::new([1])), Fit::default());
    let paste = Job::ClassifyPasted { picture, fit, settings: settings.clone(), again: None };
    let outside = |opened| Effect::Outside { same: true, opened, knobs: None };
    session.submitted(1, &paste);
    session.take(external(1, 7, &settings), now);
    let image = ExternalImage { set: 7, index: 0 };
    assert!(session.among(image).is_some() && Subject::External(image).is_open(session.open_set()));
    session.submitted(2, &paste);
    session.refreshes_outside(2);
    assert!(session.among(image).is_some(), "they are there until others have come");
    assert_eq!(session.take(external(2, 7, &settings), now), outside(false));
    assert!(session.among(image).is_some());
    session.submitted(3, &paste);
    assert_eq!(session.take(external(3, 8, &settings), now), outside(true));
    assert!(session.among(image).is_none() && !Subject::External(image).is_open(session.open_set()));
}

#[test]
fn images_that_come_first_are_read_again_as_they_were_and_not_as_those_still_to_come() {
    let mut session = Session::default();
    let settings = Settings::default_for(2);
    let fits = Fits::all(Fit { way: Way::Pad, ..Fit::default() });
    let files = |again| {
        let (paths, fits) = (vec!["/data/corpus".into()], fits.clone());
        Job::Classify { paths, fits, settings: settings.clone(), again }
    };
    let pasted = |again| {
        let (picture, fit) = (Pasted(Arc::new([1, 2, 3])), Fit { invert: true, ..Fit::default() });
        Job::ClassifyPasted { picture, fit, settings: settings.clone(), again }
    };
    let come = |session: &mut Session, job: JobId| {
        session.take(external(job, job, &settings), Instant::now());
    };
    session.submitted(1, &files(None));
    assert_eq!(session.read_outside_again(settings.clone()), None, "nothing is there yet");
    session.submitted(2, &pasted(None));
    // The short job overtakes the long one.
    come(&mut session, 2);
    assert_eq!(session.read_outside_again(settings.clone()), Some(pasted(Some(2))));
    come(&mut session, 1);
    assert_eq!(session.read_outside_again(settings.clone()), Some(files(Some(1))));
    // One that fails leaves what was said of those on show.
    session.submitted(3, &pasted(None));
    session.take(Event::JobEnded { id: 3, outcome: Outcome::Failed("no picture".into()) }, Instant::now());
    assert_eq!(session.read_outside_again(settings.clone()), Some(files(Some(1))));
    assert!(session.coming.is_empty());
    // A fit that is refused is not the fit of those on show.
    session.outside.fits.own.insert(0, Fit { invert: true, ..Fit::default() });
    let refused = session.read_outside_again(settings.clone()).unwrap();
    session.submitted(4, &refused);
    session
        .take(Event::JobEnded { id: 4, outcome: Outcome::Failed("the frame is no part of it".into()) }, Instant::now());
    assert_eq!(session.read_outside_again(settings.clone()), Some(files(Some(1))));
}

#[test]
fn a_refusal_to_what_was_asked_before_the_world_was_known_is_not_shown() {
    let law = LabelLaw::from(Prior::uniform(3));
    for refused_first in [false, true] {
        let mut figures = BayesFigures::default();
        figures.expect_curve(1, bayes::Curve::default());
        figures.expect_hardness(2, 1.0, law.clone());
        figures.expect_rankings(3, law.clone());
        let refuse = |figures: &mut BayesFigures| {
            for (generation, study) in [(1, Study::Curve), (2, Study::Hardness), (3, Study::Ranking)] {
                figures.take(Answer::Ended { generation, study, trouble: Some("it depends on the class".into()) });
            }
        };
        if refused_first {
            refuse(&mut figures);
            assert!(figures.hardness.trouble.is_some());
        }
        figures.take(Answer::World(Err("it depends on the class".into())));
        refuse(&mut figures);
        let troubles = [&figures.curve.trouble, &figures.hardness.trouble, &figures.rankings.trouble];
        assert_eq!((troubles, figures.must_be_sampled()), ([&None; 3], Some(true)));
    }
}

#[test]
fn figures_of_another_law_of_labels_are_not_shown_as_those_of_now() {
    let (plain, noise) = (LabelLaw::from(Prior::uniform(3)), LabelNoise::symmetric(0.2).ok());
    let noisy = LabelLaw { label_noise: noise, ..plain.clone() };
    let figure = Figure::new(0.1, 0.001, 0.5);
    let estimate = Estimate {
        figure,
        log_value: figure.value.ln(),
        bounds: (0.0, 1.0),
        badge: Badge::Estimated,
        method: Method::Sampling,
        why: String::new(),
        samples: 1,
        draws: 0,
        seconds: 0.0,
    };
    let mut figures = BayesFigures::default();
    let expect = |figures: &mut BayesFigures, generation, law: &LabelLaw| {
        let curve = bayes::Curve { taus: vec![1.0; 30], points: vec![None; 30], law: Some(law.clone()) };
        figures.expect_curve(generation, curve);
    };
    let answer = |figures: &mut BayesFigures, generation| {
        for index in 0..25 {
            figures.take(Answer::Curve { generation, index, estimate: estimate.clone() });
        }
    };
    let of = |curve: Option<&bayes::Curve>| curve.map(|curve| (curve.law.clone(), curve.known().count()));
    expect(&mut figures, 1, &noisy);
    answer(&mut figures, 1);
    expect(&mut figures, 2, &plain);
    assert_eq!(of(Some(figures.curve_shown())), Some((Some(plain.clone()), 0)));
    assert_eq!(of(figures.curve_of_another_law()), Some((Some(noisy.clone()), 25)));
    // Of the same law again, over another range: it stays until the new one has a shape.
    expect(&mut figures, 3, &noisy);
    assert_eq!(of(Some(figures.curve_shown())), Some((Some(noisy.clone()), 25)));
    assert!(figures.curve_of_another_law().is_none());
    expect(&mut figures, 4, &plain);
    answer(&mut figures, 4);
    assert_eq!(of(Some(figures.curve_shown())), Some((Some(plain.clone()), 25)));
    assert!(figures.curve_of_another_law().is_none());
    figures.expect_hardness(5, 1.0, noisy.clone());
    let pairs = PairErrors { errors: vec![0.1; 9], intervals: Vec::new() };
    figures.take(Answer::Pairs { generation: 5, pairs });
    figures.take(Answer::Hardness { generation: 5, hardness: ClassHardness { class: 0, one_vs_rest: figure } });
    figures.expect_hardness(6, 1.0, plain);
    assert!(figures.hardness_shown().classes.is_empty() && figures.hardness_shown().pairs.errors.is_empty());
    // Of another τ alone it stays, under its τ.
    figures.expect_hardness(7, 1.5, noisy);
    assert_eq!((figures.hardness_shown().tau, figures.hardness_shown().classes.len()), (1.0, 1));
}

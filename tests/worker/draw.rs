//! Drawings and typicality by the real worker.

use std::sync::Arc;
use std::time::Instant;

use bayescope::data::ImageShape;
use bayescope::measure::typicality::{Band, FEWEST, Reference, SAMPLES};
use bayescope::worker::protocol::{
    Event, Ground, InspectRequest, Job, Outcome, Sketch, SketchAnswer, SketchRequest, Subject,
};

use super::{Bench, adds_up, settings, spec};

const SHAPE: ImageShape = ImageShape { channels: 1, height: 32, width: 32 };

/// A vertical bar: about a 1.
fn bar() -> Sketch {
    let level = |i: usize| if (15..18).contains(&(i % 32)) && (6..26).contains(&(i / 32)) { 255 } else { 0 };
    let levels: Vec<u8> = (0..SHAPE.dims()).map(level).collect();
    let inked = levels.iter().map(|level| *level > 0).collect();
    Sketch { revision: 1, ground: None, levels, inked }
}

fn request(generation: u64, sketch: Sketch, evidence: bool) -> SketchRequest {
    SketchRequest { generation, sketch: Arc::new(sketch), settings: settings(1.0), evidence, moved: Instant::now() }
}

impl Bench {
    fn sketched(&mut self, generation: u64) -> SketchAnswer {
        self.wait(|bench| bench.worker.take_sketch().filter(|answer| answer.request.generation == generation))
    }

    /// The reference at τ, once it is complete.
    fn reference(&mut self, tau: f64) -> Reference {
        self.until(|event| match event {
            Event::Reference(news) if news.complete && news.tau.get() == tau => {
                Some(Reference::new(news.outcome.clone().unwrap()).unwrap())
            }
            _ => None,
        })
    }
}

#[test]
fn the_newest_drawing_is_answered_and_sent_to_the_gallery_as_it_was_asked_about() {
    // Without noise, so that the picture of what was drawn is what was drawn.
    let mut bench = Bench::on("mnist@9b44f254");
    for generation in 1..40 {
        let mut sketch = bar();
        sketch.levels[generation as usize] = 200;
        bench.worker.sketch(request(generation, sketch, false));
    }
    bench.worker.sketch(request(40, bar(), true));
    let answer = bench.sketched(40);
    let (pair, map) = answer.evidence.expect("it was asked for");
    assert!(adds_up(&map) && pair[0] == answer.posterior.decision && pair[1] != pair[0]);
    let job = bench.worker.submit(Job::SendSketch { sketch: Arc::new(bar()), settings: settings(1.0) });
    assert!(matches!(bench.outcome(job), Outcome::Done(_)));
    let sent = bench.seen.iter().rev().find_map(|event| match event {
        Event::External { tiles, .. } => Some(tiles[0].clone()),
        _ => None,
    });
    let sent = sent.expect("it is the image from outside");
    assert_eq!(sent.posterior.probabilities, answer.posterior.probabilities);
    assert_eq!(sent.pixels.bytes().unwrap(), bar().levels);
    // What is drawn on stays as it was, though another image has its place and the world is opened again.
    let on = |id: u64, subject: &Subject| {
        let ground = Ground { id, subject: subject.clone(), settings: settings(1.0) };
        Sketch { revision: 1, ground: Some(ground), levels: vec![0; SHAPE.dims()], inked: vec![false; SHAPE.dims()] }
    };
    let first = bench.image(0);
    bench.worker.sketch(request(41, on(1, &first), false));
    let before = bench.sketched(41).posterior;
    bench.worker.submit(Job::OpenOracle("mnist@9b44f254".into()));
    let mut other = bar();
    other.levels.rotate_left(5);
    other.inked.rotate_left(5);
    let job = bench.worker.submit(Job::SendSketch { sketch: Arc::new(other), settings: settings(1.0) });
    assert!(matches!(bench.outcome(job), Outcome::Done(_)));
    bench.worker.sketch(request(42, on(1, &first), false));
    assert_eq!(bench.sketched(42).posterior.log_likelihood, before.log_likelihood);
    bench.worker.sketch(request(43, on(2, &bench.image(0)), false));
    assert_ne!(bench.sketched(43).posterior.log_likelihood, before.log_likelihood);
    // One that is not there any more is not the one in its place, which has its name.
    bench.worker.sketch(request(44, on(3, &first), false));
    let why = bench.until(|event| match event {
        Event::Unanswered { why, .. } => Some(why.clone()),
        _ => None,
    });
    assert!(why.contains("no longer open"), "{why}");
}

/// Without ink a drawing on a sample is that sample as stored in 32 bits; and it stays so when the knobs move.
#[test]
fn without_ink_a_drawing_is_the_image_it_lies_on() {
    let mut bench = Bench::new();
    let subject = Subject::Sample { spec: spec(8), index: 5 };
    let ground = Ground { id: 1, subject: subject.clone(), settings: settings(1.0) };
    let empty = |ground: Ground| Sketch {
        revision: 1,
        ground: Some(ground),
        levels: vec![0; SHAPE.dims()],
        inked: vec![false; SHAPE.dims()],
    };
    bench.worker.sketch(request(1, empty(ground.clone()), false));
    let drawn = bench.sketched(1);
    bench.worker.inspect(InspectRequest {
        generation: 2,
        subject,
        settings: settings(1.0),
        taus: Vec::new(),
        look: None,
    });
    let inspected = bench.wait(|bench| bench.worker.take_inspection());
    let apart = drawn.posterior.distance(&inspected.tile.posterior);
    assert!(apart < 1e-3, "{apart}");
    assert_eq!(**drawn.ground.as_ref().unwrap(), inspected.tile.pixels.bytes().unwrap());
    let warm = SketchRequest { settings: settings(1.4), ..request(3, empty(ground), false) };
    bench.worker.sketch(warm);
    let warm = bench.sketched(3);
    assert_eq!(warm.ground, drawn.ground, "the image is that of τ = 1");
    assert!(warm.posterior.entropy_nats > drawn.posterior.entropy_nats);
}

/// Fresh samples of the world stand among its samples as often as the p-value says; noise and a photograph do not.
#[test]
fn samples_are_typical_and_noise_is_not_of_this_world() {
    let mut bench = Bench::new();
    let noise: Vec<u8> = (0..SHAPE.dims()).map(|i| (i as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    let sketch = |levels: Vec<u8>| Sketch { revision: 1, ground: None, inked: vec![true; levels.len()], levels };
    bench.worker.sketch(request(1, sketch(noise), false));
    let noise = bench.sketched(1).posterior.log_px;
    // Smooth light from one side, as in a photograph of a wall.
    let wall = (0..SHAPE.dims()).map(|i| (60 + 3 * (i % 32) + 2 * (i / 32)) as u8).collect();
    bench.worker.sketch(request(2, sketch(wall), false));
    let wall = bench.sketched(2).posterior.log_px;
    let reference = bench.reference(1.0);
    assert_eq!(reference.len(), SAMPLES);
    for log_px in [noise, wall] {
        assert_eq!(reference.place(log_px).map(|place| place.band), Some(Band::FarOutside), "{log_px}");
    }
    bench.worker.show(super::request(3, 200, 1.0, Vec::new()));
    let updates = bench.gallery(3);
    let samples: Vec<f64> = updates.iter().flat_map(|update| &update.tiles).map(|tile| tile.posterior.log_px).collect();
    let census = reference.census(&samples);
    assert_eq!((census.images, census.far_outside), (200, 0));
    // 5 % of 200, with four standard deviations for both samples' luck.
    assert!(census.typical >= 170, "{}", census.describe());
}

#[test]
fn other_knobs_have_a_reference_of_their_own() {
    let mut bench = Bench::new();
    let at = |generation, tau| InspectRequest {
        generation,
        subject: Subject::Sample { spec: spec(4), index: 0 },
        settings: settings(tau),
        taus: Vec::new(),
        look: None,
    };
    bench.worker.inspect(at(1, 1.0));
    let own = bench.reference(1.0);
    bench.worker.inspect(at(2, 1.3));
    let warm = bench.reference(1.3);
    assert!(warm.median() < own.median(), "a warmer base is wider, and its samples less likely");
    bench.worker.inspect(at(3, 1.0));
    assert_eq!(bench.reference(1.0), own, "the same samples again");
    assert!(own.len() >= FEWEST);
}

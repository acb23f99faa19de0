//! Pictures with posteriors, as the engine would send them.

use std::sync::Arc;

use bayescope::device::ImageSource;
use bayescope::oracle::posterior::{Posterior, Prior};
use bayescope::oracle::world::Settings;
use bayescope::units::Smoothing;
use bayescope::worker::protocol::{Event, Tile};

use super::fake::SHAPE;

/// Sample `index` at τ: a disc of its own size, and a posterior that depends on both.
pub fn tile(index: usize, tau: f64) -> Tile {
    let label = index % 10;
    let log_likelihood = (0..10).map(|class| {
        let near = ((class + 10 - label) % 10).min((label + 10 - class) % 10) as f64;
        1200.0 - near * (1.0 + (index % 7) as f64) / tau.max(0.1)
            + if index % 11 == 5 && near == 1.0 { 9.0 } else { 0.0 }
    });
    let posterior = Posterior::new(log_likelihood.collect(), &Prior::uniform(10), Smoothing::ONE);
    let radius = 3.0 + label as f64 + tau;
    let pixel = |i: usize| {
        let (x, y) = ((i % 32) as f64 - 15.5, (i / 32) as f64 - 15.5);
        let edge = (radius - (x * x + y * y).sqrt()).clamp(0.0, 1.0);
        (edge * 255.0) as u8
    };
    let pixels = ImageSource::Host((0..SHAPE.dims()).map(pixel).collect());
    Tile { index, source: label, label, pixels, posterior: Arc::new(posterior), look: None }
}

/// The picture of a tile.
pub fn bytes(tile: &Tile) -> Vec<u8> {
    tile.pixels.bytes().unwrap().to_vec()
}

/// Images from outside: set 1.
pub fn external(n: usize) -> Event {
    let tiles = (0..n).map(|i| Tile { label: tile(i, 1.0).posterior.decision, ..tile(i, 1.0) }).collect();
    let ids = (0..n).map(|i| format!("outside-{i}.png")).collect();
    Event::External {
        job: 1,
        set: 1,
        name: "folder".into(),
        shape: SHAPE,
        ids,
        tiles,
        labelled: false,
        settings: Settings::default_for(10),
        own_knobs: false,
        verdicts: Vec::new(),
        pictures: Vec::new(),
    }
}

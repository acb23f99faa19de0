//! What is written when.

use std::ops::ControlFlow;

use burn::tensor::Device;

use super::*;
use crate::data::{WorldBatch, write_npz};
use crate::oracle::folder;
use crate::oracle::pictures::Fits;

#[test]
fn a_batch_that_takes_longer_than_was_expected_is_written_pass_by_pass() {
    const WHOLE: std::time::Duration = std::time::Duration::MAX;
    const EACH: std::time::Duration = std::time::Duration::ZERO;
    let place = tempfile::tempdir().unwrap();
    let (info, weights) = folder::read("mnist").unwrap();
    let world = info.clone().build(weights, &Device::flex(), Precision::F32, 32).unwrap().world;
    let (shape, each) = (world.shape(), world.flow().images_per_pass());
    // Two whole passes and a part of a third.
    let count = 2 * each + each.div_ceil(2);
    // Black paper, with the noise within its level.
    let x = (0..count * shape.dims()).map(|i| (i * 7 % 251) as f32 / 251.0 / 256.0).collect();
    let input = place.path().join("x.npz");
    write_npz(&input, &WorldBatch { shape, x, classes: 0, y: None, posterior: None, logp: None, aleatoric: None })
        .unwrap();
    let images = Images::open(&[input], &Fits::default(), None, &world).unwrap();
    let classes = world.class_names().len();
    let spec = ScaleSpec {
        settings: Settings::default_for(classes),
        shard: 0,
        shards: 1,
        class_batch: None,
        image_batch: Some(count),
        compare: false,
    };
    let computer = Computer {
        info: &info,
        oracle: "mnist",
        world: &world,
        precision: Precision::F32,
        device: "the CPU of a test",
    };
    let frame = frame(&world, &describe(&computer, &images, &spec).unwrap(), 0);
    let log = |name: &str| Log::append(&place.path().join(name), frame.clone()).unwrap().0;
    let run = |log: &mut Log, longest, stop: bool| {
        let mut told = Vec::new();
        let mut events = |event: ScaleEvent| match event {
            ScaleEvent::Computed(running) => {
                assert_eq!(running.leaders.len(), running.images.len());
                told.push((running.images, running.pairs.done));
                if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
            _ => ControlFlow::Continue(()),
        };
        let ended = work::compute(&computer, &images, &spec, log, longest, &mut events);
        assert_eq!(ended.is_err(), stop);
        told
    };
    let scores = |log: &Log| {
        let mut sheet = log::blank(count, classes, frame.maps, shape.dims());
        log.fill(&(0..count), 0, &mut sheet).unwrap();
        (sheet.quad, sheet.log_det)
    };
    let mut whole = log("whole.scores");
    assert_eq!(run(&mut whole, WHOLE, false), [(0..count, count * classes)]);
    // What was written before a kill is there, and the rest is computed: to the same bits.
    assert_eq!(run(&mut log("killed.scores"), EACH, true), [(0..each, each * classes)]);
    let mut rest = log("killed.scores");
    let second = (each..2 * each, 2 * each * classes);
    assert_eq!(run(&mut rest, EACH, false), [second, (2 * each..count, count * classes)]);
    assert!(rest.missing() == 0 && scores(&rest) == scores(&whole));
}

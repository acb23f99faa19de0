//! A worker on the device of a window, by software Vulkan: pictures stay where they are made, figures are those of the host's
//! path, and nothing else is read back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

#[path = "common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::Duration;

use bayescope::device::{DeviceChoice, ImageSource, choose, descriptor, lend_window, paints, to_host, values_read};
use bayescope::events::silent;
use bayescope::flow::Precision;
use bayescope::oracle::folder;
use bayescope::oracle::world::{SampleSpec, Settings, World};
use bayescope::units::Seed;
use bayescope::worker::Worker;
use bayescope::worker::protocol::{Event, GalleryRequest, InspectRequest, Subject, Tile};
use crossbeam_channel::{Receiver, bounded};

/// Longer than any kernel takes to compile here.
const PATIENCE: Duration = Duration::from_secs(180);

/// Lends the first Vulkan adapter's device as a window would; whether there is one.
fn window() -> bool {
    let backends = wgpu::Backends::VULKAN;
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let Some(adapter) = burn::tensor::read_sync(instance.enumerate_adapters(backends)).into_iter().next() else {
        eprintln!("skipped: no Vulkan adapter (install mesa-vulkan-drivers)");
        return false;
    };
    let (device, queue) = burn::tensor::read_sync(adapter.request_device(&descriptor(&adapter))).unwrap();
    lend_window(&instance, &adapter, (&device, &queue), false);
    true
}

fn tarflow() -> String {
    common::reference::path("tarflow/afhq_model_2_64_2_2_0.07.pth").display().to_string()
}

/// One world on the window's device, made both ways.
fn both_ways(oracle: &str, world: &World, [nats_apart, posterior_apart]: [f64; 2]) {
    let classes = world.class_names().len();
    let (spec, settings) = (SampleSpec::new(4, Seed(3)), Settings::default_for(classes));
    let host = world.sample_indices(&spec, &settings, &[0, 1, 2, 3]).unwrap();
    let before = values_read();
    let made = world.sample_resident(&spec, &settings, &[0, 1, 2, 3], &mut silent()).unwrap().unwrap();
    let read = (values_read() - before) as usize;
    let dims = world.shape().dims();
    let levels = to_host(made.levels.clone()).unwrap();
    let (mut off, mut nats) = (0, 0f64);
    for (i, sample) in host.iter().enumerate() {
        let figures = &made.figures[i];
        assert_eq!((figures.index, figures.source, figures.label), (sample.index, sample.source, sample.label));
        assert!(figures.posterior.distance(&sample.posterior) < posterior_apart, "{oracle}");
        nats = nats.max((figures.posterior.log_px - sample.posterior.log_px).abs());
        // The image itself, read back on demand, is the sample of the host's path bit for bit.
        assert_eq!(world.fetch(&made, i).unwrap().x, sample.x, "{oracle}");
        let picture = world.flow().pixels().picture(&sample.x);
        for (level, byte) in levels[i * dims..(i + 1) * dims].iter().zip(picture) {
            assert!((level - f64::from(byte)).abs() <= 1.0, "{oracle}: {level} for {byte}");
            off += usize::from(*level != f64::from(byte));
        }
    }
    println!(
        "{oracle}: log p(x) at most {nats:.1e} nats apart, {off} of {} pixels one level, {read} values read",
        4 * dims
    );
    assert!(nats < nats_apart, "{oracle}: {nats} nats");
    assert!(off * 200 <= 4 * dims, "{oracle}: {off} pixels differ");
}

/// The gallery's tiles of a request, and the inspection of its first image.
fn ask(worker: &Worker, bell: &Receiver<()>, spec: SampleSpec) -> (Vec<Tile>, Tile, u64) {
    let settings = Settings::default_for(10);
    let before = values_read();
    let (first, look) = (Vec::new(), None);
    worker.show(GalleryRequest { generation: 1, spec, settings: settings.clone(), first, look, halted: false });
    let mut tiles: Vec<Tile> = Vec::new();
    while tiles.len() < 4 {
        match worker.take_gallery() {
            Some(update) => tiles.extend(update.tiles),
            None => bell.recv_timeout(PATIENCE).unwrap(),
        }
    }
    let read = values_read() - before;
    let subject = Subject::Sample { spec, index: 0 };
    worker.inspect(InspectRequest { generation: 2, subject, settings, taus: Vec::new(), look: None });
    let inspection = loop {
        match worker.take_inspection() {
            Some(inspection) => break inspection,
            None => bell.recv_timeout(PATIENCE).unwrap(),
        }
    };
    (tiles, inspection.tile, read)
}

#[test]
fn pictures_stay_where_they_are_made_and_only_figures_are_read_back() {
    if !window() {
        return;
    }
    let chosen = choose(DeviceChoice::Wgpu(None)).unwrap();
    assert!(paints(&chosen.device));
    // Of a shared map the device sums (z − μ)² itself, in 32 bits and for means far apart.
    let worlds = [("mnist".to_owned(), [5e-3, 1e-5]), (tarflow(), [1e-3, 1e-5]), ("cells".to_owned(), [5e-3, 1e-4])];
    for (oracle, apart) in worlds {
        let world = folder::open(&oracle, &chosen.device, Precision::F32, 16).unwrap().world;
        both_ways(&oracle, &world, apart);
    }
    let (ring, bell) = bounded(1);
    let wake = Arc::new(move || {
        let _ = ring.try_send(());
    });
    let worker = Worker::start(DeviceChoice::Wgpu(None), "mnist".into(), wake);
    let until = |wanted: fn(&Event) -> bool| {
        loop {
            match worker.poll() {
                Some(event) if wanted(&event) => break,
                Some(Event::Failed(why) | Event::Unanswered { why, .. }) => panic!("{why}"),
                Some(_) => {}
                None => bell.recv_timeout(PATIENCE).unwrap(),
            }
        }
    };
    until(|event| matches!(event, Event::Oracle { .. }));
    let samples = |seed| SampleSpec::new(4, Seed(seed));
    ask(&worker, &bell, samples(3));
    // Measured and drawn once, after the first gallery: from here on nobody else reads.
    until(|event| matches!(event, Event::Precision(_)));
    until(|event| matches!(event, Event::Reference(news) if news.complete));
    let (tiles, inspected, read) = ask(&worker, &bell, samples(4));
    assert!(tiles.iter().all(|tile| matches!(tile.pixels, ImageSource::Device(_))));
    // The log-determinants of rows and of the couplings' positions, which are added up in f64; no pixel.
    let world = folder::open("mnist", &chosen.device, Precision::F32, 16).unwrap().world;
    let before = values_read();
    let made = world.sample_resident(&samples(4), &Settings::default_for(10), &[0, 1, 2, 3], &mut silent());
    assert_eq!(made.unwrap().unwrap().figures.len(), 4);
    assert_eq!(read, values_read() - before, "the gallery reads figures and nothing else");
    assert_eq!(inspected.pixels, tiles.iter().find(|tile| tile.index == 0).unwrap().pixels);
}

//! A device that is lost in the middle of a run: what failed on it before has failed all the same.

use std::cell::Cell;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use bayescope::data::ImageShape;
use bayescope::device::{DeviceChoice, OpenDevice, choose};
use bayescope::error::{Error, Result};
use bayescope::events::{Events, silent};
use bayescope::flow::base::GaussianBase;
use bayescope::flow::glow::GlowFlow;
use bayescope::flow::preprocess::Preprocessing;
use bayescope::flow::{Decoded, Decoding, Evidence, Flow, Precision, Scores};
use bayescope::oracle::world::World;
use bayescope::run::{Run, RunContext, RunFolder, Share, execute_on};
use bayescope::units::{ClassId, Tau};

use super::common::tiny;
use super::{spec, world};

/// A flow on a device that is gone after so many inverse passes.
struct Failing {
    flow: GlowFlow,
    left: Cell<usize>,
}

impl Flow for Failing {
    fn shape(&self) -> ImageShape {
        self.flow.shape()
    }

    fn classes(&self) -> usize {
        self.flow.classes()
    }

    fn pixels(&self) -> Preprocessing {
        self.flow.pixels()
    }

    fn shared_base(&self) -> Option<&GaussianBase> {
        self.flow.shared_base()
    }

    fn score_classes(&self, x: &[f32], classes: Range<ClassId>) -> Result<Scores> {
        self.flow.score_classes(x, classes)
    }

    fn decode(&self, noise: &[f32], of: &[ClassId], tau: Tau, events: &mut dyn Events<Decoding>) -> Result<Decoded> {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => return Err(Error::DeviceLost { device: "the first".into(), why: "pulled out".into() }),
        }
        self.flow.decode(noise, of, tau, events)
    }

    fn noise(&self, x: &[f32], classes: &[ClassId], tau: Tau) -> Result<Vec<f64>> {
        self.flow.noise(x, classes, tau)
    }

    fn evidence(&self, x: &[f32], a: ClassId, b: ClassId, tau: Tau) -> Result<Evidence> {
        self.flow.evidence(x, a, b, tau)
    }
}

#[test]
fn what_failed_on_a_device_that_was_lost_later_is_not_forgotten() {
    // Images are too small for AlexNet, and those of `linear` are drawn while it is trained: after the test images.
    let spec = spec(
        "[grid]\narchitectures = ['alexnet', 'linear']\ntrain_sizes = [40]\nseeds = [0, 1]\n[test]\nimages = 20\nwatched = 20\n\
         [training]\nepochs = 1\n",
    );
    let place = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(place.path(), &spec, "0123", None).unwrap();
    let (first, lost) = (AtomicBool::new(true), OnceLock::new());
    let settings = || spec.world.settings(3).unwrap();
    let on = |chosen: &OpenDevice, work: &mut dyn FnMut(&RunContext<'_>) -> Result<()>| {
        if !first.swap(false, Ordering::Relaxed) {
            lost.wait();
            return work(&RunContext::new(&world(), settings(), &chosen.device));
        }
        let flow = Failing { flow: tiny::flow(&tiny::config(1, 8, 2, 2), 3, Precision::F32), left: Cell::new(1) };
        let names = ["a", "b", "c"].map(String::from).to_vec();
        let failing = World::new(Box::new(flow), names, 64).unwrap();
        let done = work(&RunContext::new(&failing, settings(), &chosen.device));
        lost.set(()).unwrap();
        assert!(matches!(done, Err(Error::DeviceLost { .. })), "{done:?}");
        done
    };
    let devices = vec![choose(DeviceChoice::Cpu).unwrap(), choose(DeviceChoice::Cpu).unwrap()];
    let done = execute_on(&folder, Share::ALL, devices, &on, &mut silent());
    let why = done.unwrap_err().to_string();
    assert!(why.contains("2 cells could not be finished") && why.matches("AlexNet").count() >= 2, "{why}");
    assert_eq!(folder.plan.iter().filter(|planned| folder.finished(&planned.id)).count(), 2, "the other device's");
}

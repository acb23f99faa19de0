//! The passes of one shard.

use std::borrow::Cow;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::log::{self, Log};
use super::plan::{self, Estimate};
use super::{Computer, Images, Running, ScaleEvent, ScaleSpec};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::Scores;
use crate::oracle::numbering::{renumber, within};
use crate::units::ClassId;

/// Pairs of an image and a class in some passes.
pub fn pairs(log: &Log, passes: Range<usize>, classes: usize) -> usize {
    log.images_of(passes).len() * classes
}

/// Pairs of an image and a class that are not there.
pub fn missing_pairs(log: &Log) -> usize {
    let missing = |pass: usize| log.gaps(pass).iter().map(Range::len).sum::<usize>();
    (0..log.passes()).map(|pass| pairs(log, pass..pass + 1, missing(pass))).sum()
}

/// Everything that stays the same while a shard is computed.
struct Work<'a> {
    computer: &'a Computer<'a>,
    images: &'a Images,
    spec: &'a ScaleSpec,
    plan: Estimate,
    started: Instant,
    /// When a block was written last, and after how long the next one is due.
    written: Instant,
    longest: Duration,
    /// Pairs there when this process began, there now, and all.
    found: usize,
    pairs: Progress,
}

/// Computes what the log lacks. What was computed is written after each batch, and within one as soon as `longest` has passed
/// since the last write: the batches are sized by a single pass, which may have been faster than those to come.
///
/// # Errors
/// As [`super::run`].
pub fn compute(
    computer: &Computer<'_>,
    images: &Images,
    spec: &ScaleSpec,
    log: &mut Log,
    longest: Duration,
    events: &mut dyn Events<ScaleEvent>,
) -> Result<()> {
    let plan = estimate(computer, images, spec, log)?;
    events.report(ScaleEvent::Estimated(plan.clone()))?;
    let total = pairs(log, 0..log.passes(), computer.world.class_names().len());
    let found = total - missing_pairs(log);
    let pairs = Progress { done: found, total };
    let now = Instant::now();
    let mut work = Work { computer, images, spec, plan, started: now, written: now, longest, found, pairs };
    let mut pass = 0;
    while pass < log.passes() {
        let gaps = log.gaps(pass);
        let most = pass + work.plan.image_batch / work.plan.images_per_pass;
        let mut end = pass + 1;
        while !gaps.is_empty() && end < most.min(log.passes()) && log.gaps(end) == gaps {
            end += 1;
        }
        work.batch(log, pass..end, &gaps, events)?;
        pass = end;
    }
    Ok(())
}

/// Times the first missing pass.
fn estimate(computer: &Computer<'_>, images: &Images, spec: &ScaleSpec, log: &Log) -> Result<Estimate> {
    let world = computer.world;
    let (classes, dims) = (world.class_names().len(), world.shape().dims());
    let each = if world.flow().shared_base().is_some() { classes } else { 1 };
    let Some(first) = (0..log.passes()).find(|&pass| !log.gaps(pass).is_empty()) else {
        return Err(Error::input("nothing is left to compute"));
    };
    let of = log.images_of(first..first + 1);
    let x = images.x(of.clone(), world)?;
    let missing: usize = log.missing();
    let n = world.flow().images_per_pass();
    let measured = plan::time(computer.device, n, || pass(computer, &x, of.start, 0..each).map(drop))
        .map_err(|error| within(error, images.name()))?;
    Ok(Estimate::new(spec, [missing.div_ceil(each), n, each, classes, dims], measured))
}

/// One pass of images from `first` on: always of the same number, the last of them repeated where
/// there are fewer.
fn pass(computer: &Computer<'_>, x: &[f32], first: usize, classes: Range<ClassId>) -> Result<Scores> {
    let flow = computer.world.flow();
    let dims = flow.shape().dims();
    let (images, full) = (x.len() / dims, flow.images_per_pass() * dims);
    let mut whole = Cow::Borrowed(x);
    while whole.len() < full {
        whole.to_mut().extend_from_slice(&x[x.len() - dims..]);
    }
    // The number of classes in a pass may change the result of each: always one.
    let each = if flow.passes_by_class() { 1 } else { classes.len() };
    let mut all: Option<Scores> = None;
    for class in classes.clone().step_by(each.max(1)) {
        let part = flow.score_classes(&whole, class..class + each).map_err(|error| renumber(error, first))?;
        all = Some(match all {
            Some(all) => all.with_classes(&part),
            None => part,
        });
    }
    let mut scores = all.ok_or_else(|| Error::input("a pass needs a class"))?;
    scores.quad.truncate(images * scores.classes);
    scores.log_det.truncate(images * scores.log_norm.len());
    Ok(scores)
}

impl Work<'_> {
    /// Some passes under the classes they lack, each class batch written before the next, in one block or, where that takes too
    /// long, in several of whole passes.
    fn batch(
        &mut self,
        log: &mut Log,
        passes: Range<usize>,
        gaps: &[Range<ClassId>],
        events: &mut dyn Events<ScaleEvent>,
    ) -> Result<()> {
        if gaps.is_empty() {
            return Ok(());
        }
        let world = self.computer.world;
        let (classes, dims) = (world.class_names().len(), world.shape().dims());
        let of = log.images_of(passes.clone());
        let x = self.images.x(of.clone(), world)?;
        let maps = if world.flow().shared_base().is_some() { 1 } else { classes };
        let mut sheet = log::blank(of.len(), classes, maps, dims);
        log.fill(&of, of.start, &mut sheet)?;
        let step = self.plan.class_batch;
        let pieces =
            gaps.iter().flat_map(|gap| gap.clone().step_by(step).map(move |first| first..gap.end.min(first + step)));
        let mut known = vec![true; classes];
        gaps.iter().cloned().flatten().for_each(|class| known[class] = false);
        for piece in pieces {
            piece.clone().for_each(|class| known[class] = true);
            let mut block: Option<Scores> = None;
            let mut first = passes.start;
            for at in passes.clone() {
                let pass_of = log.images_of(at..at + 1);
                let x = &x[(pass_of.start - of.start) * dims..(pass_of.end - of.start) * dims];
                let scores = pass(self.computer, x, pass_of.start, piece.clone())
                    .map_err(|error| within(error, self.images.name()))?;
                match &mut block {
                    Some(block) => block.append(scores),
                    None => block = Some(scores),
                }
                if at + 1 < passes.end && self.written.elapsed() < self.longest {
                    continue;
                }
                let Some(block) = block.take() else { continue };
                let images = log.images_of(first..at + 1);
                first = at + 1;
                log.push(images.start, piece.clone(), &block)?;
                self.written = Instant::now();
                let row = images.start - of.start;
                log::put(&mut sheet, row, &piece, &block.quad, &log::constants(&block));
                self.pairs.done += images.len() * piece.len();
                events.report(ScaleEvent::Computed(self.running(&images, row, &sheet, &known)))?;
            }
        }
        Ok(())
    }

    /// The posteriors among the classes known so far of images whose rows begin at `row`.
    fn running(&self, images: &Range<usize>, row: usize, sheet: &Scores, known: &[bool]) -> Running {
        let settings = &self.spec.settings;
        let leader = |i: usize| {
            let posterior = self.computer.world.posterior(sheet, i, settings);
            (posterior.decision, posterior.probabilities[posterior.decision])
        };
        let prior = settings.prior.probabilities().iter().zip(known);
        let fresh = (self.pairs.done - self.found).max(1) as f64;
        Running {
            images: images.clone(),
            classes: Progress { done: known.iter().filter(|known| **known).count(), total: known.len() },
            leaders: (row..row + images.len()).map(leader).collect(),
            prior_left: prior.filter(|(_, known)| !**known).map(|(p, _)| p).sum(),
            pairs: self.pairs,
            seconds_left: self.started.elapsed().as_secs_f64() * (self.pairs.total - self.pairs.done) as f64 / fresh,
        }
    }
}

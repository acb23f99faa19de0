//! `bayescope external`, and external runs in `summary` and `watch`.

use std::path::{PathBuf, absolute};
use std::sync::Arc;

use super::args::{ExternalCommand, ExternalStartArgs, ExternalWorstArgs, SummaryArgs};
use super::laws::fits_text;
use super::open::{Opened, with_oracle};
use super::output::{print_json, print_text, tell_written};
use super::target::settings;
use super::task::run_task;
use super::watch::Seen;
use super::worst::beliefs;
use crate::device::OpenDevice;
use crate::error::{Error, Result};
use crate::measure::{Estimate, Measured};
use crate::run::external::{
    Course, ExternalFolder, ExternalSpec, ExternalSummary, RunLaw, StartExternal, StepFigures, StepImage, StepWorst,
    csv, figures, law_of,
};
use crate::run::monitor::{Alarm, Track, alarms};
use crate::run::{AnyRun, write_figures};
use crate::units::{Seed, counted};

/// Steps in the table of a summary; of more, some all over the course.
const LINES: usize = 24;

/// Does what the arguments say.
pub fn run(command: &ExternalCommand) -> Result<()> {
    let args = match command {
        ExternalCommand::Start(args) => args,
        ExternalCommand::Worst(args) => return worst(args),
    };
    let spec = with_oracle(&args.oracle, &args.compute, |opened, chosen| start(args, opened, chosen))?;
    args.output.print(&spec, |spec| tell(args, spec))
}

fn start(args: &ExternalStartArgs, opened: &Opened, chosen: &OpenDevice) -> Result<ExternalSpec> {
    let whole = absolute(&args.out).map_err(|e| Error::io(&args.out, e))?;
    let of_folder = || whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let task = StartExternal {
        folder: args.out.clone(),
        name: args.name.clone().unwrap_or_else(of_folder),
        oracle: args.oracle.clone(),
        settings: settings(
            (&args.world, &args.target),
            args.compute.precision,
            opened,
            "--test is the number of images",
        )?,
        precision: args.compute.precision.into(),
        images: args.test,
        seed: Seed(args.seed),
        predictions: args.predictions,
        train_images: args.train_images.map(|images| images as u64),
    };
    run_task(&task, Some(opened), chosen, "drawing test images")
}

fn tell(args: &ExternalStartArgs, spec: &ExternalSpec) -> Result<()> {
    let (test, place) = (&spec.test, args.out.display());
    let mut text = format!("{place}: {} test images of {} classes in {place}/test\n", test.images, test.classes.len());
    if let Some(target) = args.target.target {
        text += &format!("τ = {}, for a Bayes error of {:.4} %\n", spec.world.tau.get(), 100.0 * target);
    }
    if let Some(rounding) = test.rounding.describe() {
        text += &format!("{rounding}\n");
    }
    text += &format!(
        "write {} of them, [{}, {}], to {place}/predictions/STEP.pred as docs/external-runs.md says; `bayescope watch {place}` follows\n",
        spec.external.predictions.describe(),
        test.images,
        test.classes.len()
    );
    print_text(&text)
}

/// `bayescope summary` of an external run.
pub fn summary(folder: &ExternalFolder, args: &SummaryArgs) -> Result<()> {
    if args.worst.is_some() || args.bought.is_some() {
        return Err(Error::file(&folder.path, "is an external run and has no cells: --worst and --bought name one"));
    }
    let (summary, course) = folder.summary()?;
    if let Some(place) = &args.figures {
        let written = write_figures(&figures(&folder.spec, &course), &[], place, &folder.spec.name)?;
        return tell_written(&written, args.json);
    }
    match (args.csv, args.json) {
        (true, _) => print_text(&csv(&course)),
        (_, true) => print_json(&summary),
        _ => print_text(&text(&summary, &course.unread(), &odd(folder, &Arc::new(course)))),
    }
}

/// What is odd about a course, a sentence a line, in the words of the panel *Monitor*.
fn odd(folder: &ExternalFolder, course: &Arc<Course>) -> Vec<String> {
    let track = Track::external(folder.spec.name.clone(), &folder.spec, course.clone());
    alarms(&track).iter().map(Alarm::sentence).collect()
}

/// `bayescope summary` of several runs: the law of KL over N.
pub fn law(args: &SummaryArgs) -> Result<()> {
    if args.worst.is_some() || args.bought.is_some() {
        return Err(Error::input("--worst and --bought name a cell of one run; several runs are given"));
    }
    let open = |run: &PathBuf| match AnyRun::open(run)? {
        AnyRun::External(folder) => Ok(*folder),
        AnyRun::Grid(_) | AnyRun::Hardness(_) => Err(Error::file(
            run,
            "is no external run: the law of several runs is one of external runs, a grid has its own",
        )),
    };
    let law = law_of(&args.runs.iter().map(open).collect::<Result<Vec<_>>>()?)?;
    if let Some(place) = &args.figures {
        let written = write_figures(&[law.figure()], &law.tables(), place, "external-law")?;
        return tell_written(&written, args.json);
    }
    match (args.csv, args.json) {
        (true, _) => print_text(&law.csv()),
        (_, true) => print_json(&law),
        _ => print_text(&law_text(&law)),
    }
}

fn law_text(law: &RunLaw) -> String {
    let mut text = format!(
        "{} external runs on the same test images, each at its step with the smallest KL; runs of equal N are seeds\n\
         floor of every classifier: {} nats\n\n{:>10} {:>5} {:>10}  {:>9} [{:>7}, {:>7}]  run\n",
        law.points.len(),
        within(law.aleatoric, 1.0, 4),
        "images N",
        "seed",
        "step",
        "KL nats",
        "95 %",
        ""
    );
    for point in &law.points {
        let Estimate { value, interval } = point.epistemic;
        text += &format!(
            "{:>10} {:>5} {:>10}  {value:>9.5} [{:>7.5}, {:>7.5}]  {}\n",
            point.train_images,
            point.seed,
            point.step,
            interval.low,
            interval.high,
            point.folder.display()
        );
    }
    text += &format!("\n{}", fits_text("external runs", &law.fits));
    if let Some(caveat) = &law.fits.law().caveat {
        text += &format!("  {caveat}\n");
    }
    if let Some(held) = &law.hold_out {
        text += &format!("  {}\n", held.sentence);
    }
    text
}

/// `bayescope external worst`.
fn worst(args: &ExternalWorstArgs) -> Result<()> {
    let folder = ExternalFolder::open(&args.run)?;
    args.output.print(&folder.worst(args.step, args.count)?, tell_worst)
}

fn tell_worst(worst: &StepWorst) -> Result<()> {
    let name = |class: usize| worst.classes.get(class).cloned().unwrap_or_else(|| format!("class {class}"));
    let (n, StepWorst { step, tested, .. }) = (worst.images.len(), worst);
    let mut text = format!("step {step}: the {n} of {tested} test images with the largest KL(p || q)\n");
    text += &format!(
        "{:>7} {:>9} {:>9}  {:<12} {:<12} {:>7} {:>7}  exact p and the classifier's q\n",
        "image", "KL nats", "H(p)", "drawn label", "decision", "p of it", "q of it"
    );
    for one in &worst.images {
        let StepImage { worst, entropy, decision, p_decision, q_decision } = one;
        text += &format!(
            "{:>7} {:>9.4} {entropy:>9.4}  {:<12} {:<12} {p_decision:>7.4} {q_decision:>7.4}  {}\n",
            worst.image,
            worst.kl,
            name(worst.label),
            name(*decision),
            beliefs(worst, &name)
        );
    }
    print_text(&text)
}

fn text(summary: &ExternalSummary, unread: &[String], odd: &[String]) -> String {
    let ExternalSummary { spec, records, every, steps, last, finished, .. } = summary;
    let state = if *finished { "finished" } else { "not said to be finished" };
    let mut text = format!("{}: {records} records, {state}\n", spec.name);
    if *every > 1 {
        text += &format!("one of {every} records is read, and the last\n");
    }
    unread.iter().for_each(|sentence| text += &format!("{sentence}\n"));
    let (Some(last), Some(newest)) = (last, steps.last()) else { return text + "no record of predictions yet\n" };
    text += &format!(
        "floor of every classifier: {} nats, {:.2} % wrong at least\n\n{:>10} {:>8} {:>9}  {:>8} {:>9} [{:>7}, {:>7}]  {:>16} {:>6} {:>9}\n",
        within(last.aleatoric, 1.0, 4),
        100.0 * newest.bayes_error.value,
        "step",
        "epoch",
        "train",
        "L nats",
        "KL nats",
        "95 %",
        "",
        "expected error %",
        "ECE",
        "exact CE"
    );
    let each = steps.len().div_ceil(LINES);
    let shown = steps.iter().enumerate().filter(|(i, _)| i.is_multiple_of(each) || i + 1 == steps.len());
    shown.for_each(|(_, step)| text += &line(step));
    if let Some(best) = summary.best() {
        text += &format!("\nsmallest KL: {:.5} nats at step {}\n", best.epistemic.value, best.step);
    }
    text += &of_last(newest.step, last);
    let zeros = steps.iter().filter(|step| step.zeros > 0).collect::<Vec<_>>();
    if let Some(told) = zeros.last().and_then(|step| step.zeros_told()) {
        let others = zeros.len() - 1;
        text += &told;
        text +=
            &if others > 0 { format!(" Steps before it with such probabilities: {others}.\n") } else { "\n".into() };
    }
    odd.iter().for_each(|sentence| text += &format!("{sentence}\n"));
    text
}

fn line(step: &StepFigures) -> String {
    let told = |value: Option<f64>, digits: usize| value.map_or_else(String::new, |value| format!("{value:.digits$}"));
    let zeros = if step.zeros > 0 { format!("  {} times q = 0", step.zeros) } else { String::new() };
    format!(
        "{:>10} {:>8} {:>9}  {:>8.4} {:>9.5} [{:>7.5}, {:>7.5}]  {:>16.2} {:>6.4} {:>9.4}{zeros}\n",
        step.step,
        told(step.epoch, 2),
        told(step.train_loss, 4),
        step.cross_entropy.value,
        step.epistemic.value,
        step.epistemic.interval.low,
        step.epistemic.interval.high,
        100.0 * step.expected_error.value,
        step.ece,
        step.exact_calibration_error
    )
}

fn within(Estimate { value, interval }: Estimate, unit: f64, digits: usize) -> String {
    format!("{:.digits$} [{:.digits$}, {:.digits$}]", unit * value, unit * interval.low, unit * interval.high)
}

fn of_last(step: u64, m: &Measured) -> String {
    format!(
        "step {step}: cross-entropy {} = aleatoric {:.4} + epistemic {} nats\n  wrong {} % of drawn labels, {} % expected, {:.2} % at \
         least; ECE {}, exact calibration error {}\n",
        within(m.cross_entropy, 1.0, 4),
        m.aleatoric.value,
        within(m.epistemic, 1.0, 5),
        within(m.error, 100.0, 2),
        within(m.expected_accuracy.complement(), 100.0, 2),
        100.0 * m.bayes_accuracy.complement().value,
        within(m.ece, 1.0, 4),
        within(m.exact_calibration_error, 1.0, 4)
    )
}

/// What a watcher sees. Records that were seen `before` are not read again.
pub fn look(folder: &ExternalFolder, before: &mut Option<Arc<Course>>) -> Result<Seen> {
    let course = Arc::new(folder.look(before.as_deref(), usize::MAX)?);
    let last = course.steps().next_back();
    let json = serde_json::json!({
        "finished": course.finished, "records": course.records, "refused": course.refused(), "misnamed": course.misnamed,
        "heard": course.heard, "last": last,
    });
    let mut text = format!("{}: {}\n", folder.spec.name, counted(course.records, "record"));
    if let Some(step) = last {
        let train = step.train_loss.map_or_else(String::new, |loss| format!(", training loss {loss:.4} nats"));
        text += &format!(
            "  step {}{train}: L {:.4} = A {:.4} + KL {} nats; wrong {:.2} % expected, {:.2} % at least; ECE {:.4}, exact {:.4}\n",
            step.step,
            step.cross_entropy.value,
            step.aleatoric.value,
            within(step.epistemic, 1.0, 5),
            100.0 * step.expected_error.value,
            100.0 * step.bayes_error.value,
            step.ece,
            step.exact_calibration_error
        );
    }
    let told = last.and_then(|step| step.zeros_told());
    for sentence in told.into_iter().chain(odd(folder, &course)).chain(course.unread()) {
        text += &format!("  {sentence}\n");
    }
    let over = course.finished;
    *before = Some(course);
    Ok(Seen { json, text, over })
}

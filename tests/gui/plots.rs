//! The panel *Experiments*: the points of its plots as files, and how long it takes to draw thousands.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bayescope::experiment::{CellResult, Summary};
use bayescope::gui::App;
use bayescope::measure::{Estimate, Interval};
use bayescope::run::{Line, Planned, Run, RunFolder, RunNotes, State, Status};
use bayescope::worker::protocol::Event;
use bayescope::worker::runs::{CellLook, Contents, Course, Found, LawCurve, Look as RunLook, Results, look};
use eframe::egui::{Key, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::experiments::{click, glance, measured, open, panel, rewrite, run};
use super::shows;
use super::tables::read;

/// What a button's file would hold.
fn saved(harness: &mut Harness<'_, App>, button: &str, path: &Path) -> String {
    click(harness, button);
    assert!(shows(harness, "Save the points of the plot"));
    rewrite(harness, "Path", &path.display().to_string());
    harness.key_press(Key::Enter);
    let patience = Instant::now() + Duration::from_secs(30);
    while !path.exists() {
        assert!(Instant::now() < patience, "nothing was saved");
        harness.step();
    }
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_points_of_every_plot_can_be_saved() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let (path, out) = (place.path().join("mine"), |name: &str| place.path().join(name));
    let folder = run(&path, "mine", 16);
    let id = &folder.plan[15].id;
    let watched = "{\"kind\":\"watched\",\"step\":8,\"epoch\":2,\"train_loss\":0.4,\"cross_entropy\":0.625,\"aleatoric\":0.25,\
                   \"epistemic\":0.375,\"expected_accuracy\":0.8}\n";
    let train =
        |step: usize| format!("{{\"kind\":\"train\",\"step\":{step},\"loss\":{},\"rate\":0.1}}\n", 1.0 / step as f64);
    let lines: String = (1..=8).map(train).chain([watched.to_owned()]).collect();
    std::fs::write(folder.cell(id).join("metrics.jsonl"), lines).unwrap();
    open(&mut harness, &fake, &path);
    click(&mut harness, "Cell: ConvNet on 800 images, seed 1");
    glance(&mut harness, &fake, &path);
    let result = folder.result(id).unwrap().unwrap();

    let text = saved(&mut harness, "Save the scaling plot as CSV", &out("scaling.csv"));
    let head = [
        format!("# run: {}", path.display()),
        "# spec: mine".into(),
        "# world: mnist (weights not at hand), tau 1".into(),
    ];
    assert!(head.iter().all(|line| text.contains(line)), "{text}");
    let rows = |text: &str| text.lines().filter(|line| !line.starts_with('#')).count() - 1;
    // Two figures a cell; two laws, each again without the largest N with its forecast and what came; a floor.
    assert_eq!(rows(&text), 2 * 16 + 2 * (48 + 48 + 2) + 1);
    let kl = result.measured.epistemic;
    let line = format!("ConvNet,KL,{id},1,800,{},{},{}", kl.value, kl.interval.low, kl.interval.high);
    assert!(text.contains(&line), "{line} is not in {text}");

    let text = saved(&mut harness, "Save the course of the training as CSV", &out("training.csv"));
    assert!(text.contains("# cell: ConvNet on 800 images, seed 1"));
    assert!(text.contains("training cross-entropy,4,0.25,,") && text.contains("test KL,8,0.375,,"), "{text}");
    assert_eq!(rows(&text), 8 + 3);

    let text = saved(&mut harness, "Save the reliability diagram as CSV", &out("reliability.csv"));
    let bins = &result.measured.reliability.bins;
    assert_eq!(rows(&text), 2 * bins.len());
    let line = format!("exact posterior,{},{},,,{}", bins[0].mean_confidence, bins[0].exact_rate, bins[0].count);
    assert!(text.contains(&line), "{line} is not in {text}");
}

#[test]
fn the_law_without_the_largest_n_is_in_the_plot_and_its_table() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("mine");
    run(&path, "mine", 16);
    open(&mut harness, &fake, &path);
    let laws = look(&path, &[], false, None).found.unwrap().grid().unwrap().results.summary.laws.clone();
    let held = laws[1].hold_out.clone().unwrap();
    assert_eq!((held.n, laws[1].architecture.label()), (800.0, "ConvNet"));
    let row = |part: &str, Estimate { value, interval }: Estimate| {
        let numbers = [800.0, value, interval.low, interval.high].map(|number| number.to_string());
        ["ConvNet", part, "", ""].map(str::to_owned).into_iter().chain(numbers).collect::<Vec<String>>()
    };
    let forecast = row("forecast of KL at the held-out N", held.forecast);
    let table = read(&mut harness, "scaling law");
    assert!(table.contains(&forecast), "{forecast:?} is not in {table:?}");
    assert!(table.contains(&row("KL that came at the held-out N", held.came)), "{table:?}");
    let course = table.iter().filter(|row| row[0] == "ConvNet" && row[1] == "law of KL without the largest N");
    assert_eq!(course.count(), 48);
    // The key of the plot takes it away, from the table too.
    click(&mut harness, "law without the largest N (dashed, diamond: its forecast with 95 % interval)");
    assert!(read(&mut harness, "scaling law").iter().all(|row| !row[1].contains("held-out")));
}

/// A run of 3,000 cells, and a course of 200,000 steps of its last one.
fn large(path: &Path) -> Found {
    let sizes: Vec<String> = (0..20).map(|i| (100 * (i + 1) * (i + 1)).to_string()).collect();
    let seeds: Vec<String> = (0..30).map(|seed: usize| seed.to_string()).collect();
    let text = format!(
        "name = 'large'\n[world]\noracle = 'mnist'\n[grid]\narchitectures = ['linear', 'mlp-500', 'convnet', 'alexnet', \
         'wrn-28-10']\ntrain_sizes = [{}]\nseeds = [{}]",
        sizes.join(","),
        seeds.join(",")
    );
    let folder = RunFolder::create(path, &toml::from_str(&text).unwrap(), "0123", None).unwrap();
    let result = |(i, planned): (usize, &Planned)| {
        let cell = planned.cell;
        let mut measured = measured(0.5);
        let factor = (cell.train_size as f64 / 100.0).powf(-0.4) * (1.0 + 0.2 * (i as f64).sin());
        for one in [&mut measured.epistemic, &mut measured.cross_entropy] {
            let Interval { low, high } = one.interval;
            one.value *= factor;
            one.interval = Interval { low: low * factor, high: high * factor };
        }
        let (parameters, steps, train_loss) = (7850, 8, 0.3);
        CellResult { id: planned.id.clone(), cell, parameters, steps, train_loss, measured, blocks: None, output: None }
    };
    let results: Vec<CellResult> = folder.plan.iter().enumerate().map(result).collect();
    let summary = Summary::of(&folder.spec, &std::collections::BTreeMap::new(), results, &[]).unwrap();
    let curves = summary.laws.iter().filter_map(|law| {
        let fits = law.fits.as_ref()?;
        let points = (0..48).map(|i| 100.0 * 1.13f64.powi(i)).map(|n| {
            let band = fits.band(n);
            [n, fits.law().value(n), band.low, band.high]
        });
        let without_largest = law.hold_out.iter().flat_map(|held| held.course(48)).collect();
        Some(LawCurve { architecture: law.architecture, labels: law.labels, points: points.collect(), without_largest })
    });
    let curves = curves.collect();
    let cells = folder.plan.iter().map(|planned| {
        let status = Some(Status::new(State::Done, 8, 8, None));
        CellLook { planned: planned.clone(), finished: true, stale: false, status }
    });
    let noise = |step: usize| 2.0 / (step as f64).sqrt() + 0.2 * (step as f64 * 0.7).sin().abs();
    let lines = (1..=200_000).map(|step| Line::Train { step, loss: noise(step), rate: 1e-3 }).collect();
    let courses = vec![Arc::new(Course { cell: folder.plan[2999].id.clone(), lines })];
    let (cells, results) = (
        cells.collect(),
        Arc::new(Results {
            summary,
            curves,
            figures: Vec::new(),
            tables: Vec::new(),
            oracle: "mnist".into(),
            world: None,
        }),
    );
    Found { spec: Arc::new(folder.spec), cells, results, courses, begun: Vec::new() }
}

/// Medians of milliseconds: of a frame as the test steps it, accessibility tree included, and of tessellating it.
fn frame_times(
    harness: &mut Harness<'_, App>,
    frames: usize,
    mut before: impl FnMut(&mut Harness<'_, App>),
) -> [f64; 2] {
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (mut steps, mut tessellations) = (Vec::new(), Vec::new());
    for _ in 0..frames {
        before(harness);
        let began = Instant::now();
        harness.step();
        steps.push(1e3 * began.elapsed().as_secs_f64());
        let (shapes, scale) = (harness.output().shapes.clone(), harness.output().pixels_per_point);
        let began = Instant::now();
        let painted = harness.ctx.tessellate(shapes, scale);
        tessellations.push(1e3 * began.elapsed().as_secs_f64());
        assert!(!painted.is_empty());
    }
    [median(steps), median(tessellations)]
}

/// Run alone, in release: `cargo test --release --features bundle,lend --test gui -- --ignored --nocapture thousands`.
#[test]
#[ignore = "measures times: to be run alone on a quiet machine"]
fn thousands_of_cells_and_long_courses_leave_time_for_frames() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("large");
    let found = large(&path);
    super::disk::drop_in(&mut harness, [&path]);
    harness.run_steps(4);
    let look = RunLook { folder: path.clone(), found: Ok(Contents::Grid(found)), notes: Ok(RunNotes::default()) };
    fake.send(Event::Looked(Box::new(look.clone())));
    harness.run_steps(4);
    assert!(shows(&harness, "3,000 of 3,000") || shows(&harness, "3000 of 3000"), "{:?}", super::labels(&harness));
    let report = |name: &str, [step, tessellation]: [f64; 2]| {
        println!("{name}: {step:.2} ms a frame, {tessellation:.2} ms to tessellate");
        step + tessellation
    };
    let all = frame_times(&mut harness, 200, |_| ());
    let mut worst = report("cells and course", all);
    let news = frame_times(&mut harness, 30, |_| fake.send(Event::Looked(Box::new(look.clone()))));
    report("the same, news of the run in every frame", news);
    harness.get_by_label("Loss over the number of training images").scroll_to_me();
    harness.run_steps(6);
    let still = frame_times(&mut harness, 200, |_| ());
    worst = worst.max(report("law", still));
    let area = harness.get_by_label("Loss over the number of training images").rect();
    let mut at = 0.0;
    let hovered = frame_times(&mut harness, 200, |harness| {
        at += 1.0;
        harness.hover_at(area.left_center() + vec2(60.0 + at, 40.0 * (at * 0.1).sin()));
    });
    worst = worst.max(report("law under a moving pointer", hovered));
    assert!(worst < 8.0, "{worst:.1} ms");
}

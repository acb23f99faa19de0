use super::*;
use crate::classifier::Architecture;
use crate::experiment::Cell;
use crate::experiment::form::{Cell as FormCell, Input, Rows};
use crate::experiment::hand_made::{around, measured, near, result, spec, whole_at_any_time};
use crate::experiment::identity::Files;
use crate::experiment::output::Findings;
use crate::figure::Style;
use crate::measure::Measured;

const SPEC: &str = "[world]\noracle = 'mnist'\n[grid]\narchitectures = ['linear', 'mlp-500', 'mobilenet-v3-large']\n\
                    train_sizes = [100, 400]\nseeds = [0, 1]\n[training]\nepochs = 10\nbatch = 20\n[experiment]\nkind = 'axes'\n\
                    trainings = [{ name = 'usual' }, { name = 'short', change = { epochs = 2 } }, \
                    { name = 'steps', change = { steps = 1000 } }, { name = 'fast', change = { learning_rate = 1e-2 } }]\n";

/// KL falls with N and parameters; after training `steps` it is 0.02 and, under seed 1, 0.03 below that of `short`.
fn results(spec: &ExperimentSpec) -> Vec<CellResult> {
    let of = |cell: &Cell| {
        // No two classifiers of equal compute have an equal KL.
        let size = [0.3, 0.21, 0.1][Architecture::ALL.iter().position(|a| *a == cell.architecture).unwrap().min(2)];
        let own = [0.01, 0.03, 0.01 - 0.01 * cell.seed as f64, 0.02][cell.condition];
        let epistemic = around(size + own + 10.0 / cell.train_size as f64, 0.001);
        let macs = [Some(1e3), Some(1e5), None][(size * -10.0 + 3.0).round() as usize];
        let training = spec.training_of(cell.architecture, cell.condition).unwrap();
        let compute = Compute { macs_per_image: macs, images_seen: training.images_seen(cell.train_size) };
        let found = result(*cell, Measured { epistemic, ..measured(0.2, 0.2, 0.1 + own) });
        CellResult { output: Some(CellOutput::new(compute)), ..found }
    };
    spec.cells().iter().map(of).collect()
}

fn axes(spec: &ExperimentSpec, cells: &[CellResult]) -> TrainingAxes {
    TrainingAxes::of(spec, spec.experiment.get().unwrap(), cells)
}

#[test]
fn a_training_changes_what_it_names_and_the_name_of_its_cells() {
    let spec = spec(SPEC);
    let training = |at: usize| spec.training_of(Architecture::Linear, at).unwrap();
    assert_eq!(training(0), spec.training);
    assert_eq!(training(1), TrainingSpec { epochs: 2, ..spec.training });
    assert_eq!(training(2), TrainingSpec { epochs: 0, steps: Some(1000), ..spec.training });
    let cell = spec.cells()[0];
    let steps = [0, 1, 2].map(|condition| spec.steps(&Cell { condition, ..cell }).unwrap());
    assert_eq!(steps, [50, 10, 1000]);
    // A cell that is trained as in the plain grid is that cell.
    let id = |spec: &ExperimentSpec, condition: usize| {
        Cell { condition, ..cell }.id(spec, &Files::of(spec, "w", None, &[]).unwrap()).unwrap()
    };
    let plain = |training| ExperimentSpec { experiment: Experiment::default(), training, ..spec.clone() };
    for at in 0..4 {
        assert_eq!(id(&spec, at), id(&plain(training(at)), 0));
    }
}

#[test]
fn a_random_start_is_a_cell_without_weights() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weights.safetensors");
    crate::data::write_atomically(&file, |file| file.write_all(b"weights")).unwrap();
    let text = SPEC.replace("{ name = 'usual' }", "{ name = 'usual' }, { name = 'anew', from_scratch = true }");
    let plain: ExperimentSpec = toml::from_str(&format!("name = 'x'\n{text}")).unwrap();
    assert!(plain.validate().unwrap_err().to_string().contains("every training starts from scratch"));
    let text = format!("{text}[pretrained]\nlinear = {:?}\nmlp-500 = {file:?}\nmobilenet-v3-large = {file:?}\n", file);
    let spec = spec(&text);
    let bare = ExperimentSpec { pretrained: Default::default(), ..spec.clone() };
    let id = |spec: &ExperimentSpec, condition: usize| {
        let files = Files::of(spec, "w", None, &[]).unwrap();
        Cell { condition, ..spec.cells()[0] }.id(spec, &files).unwrap()
    };
    assert_eq!(id(&spec, 1), id(&bare, 0));
    assert_ne!(id(&spec, 0), id(&bare, 0));
}

#[test]
fn what_cannot_be_is_named() {
    let wrong = |from: &str, to: &str| {
        let text = SPEC.replace(from, to);
        let spec: ExperimentSpec = toml::from_str(&format!("name = 'x'\n{text}")).unwrap();
        spec.validate().unwrap_err().to_string()
    };
    let unknown = wrong("learning_rate", "learningrate");
    assert!(unknown.contains("fast") && unknown.contains("learningrate"), "{unknown}");
    assert!(wrong("'short'", "'usual'").contains("named twice"));
    let same = wrong("change = { epochs = 2 }", "change = { epochs = 10 }");
    assert!(same.contains("short") && same.contains("under another name"), "{same}");
    let text = SPEC.split("trainings").next().unwrap();
    let spec: ExperimentSpec = toml::from_str(&format!("name = 'x'\n{text}trainings = []\n")).unwrap();
    assert!(spec.validate().unwrap_err().to_string().contains("empty"));
}

#[test]
fn the_longest_stands_beside_the_shortest_of_those_that_differ_in_length_alone() {
    let spec = spec(SPEC);
    let found = axes(&spec, &results(&spec));
    // Three networks at two N; `fast` has another rate and no other length.
    assert_eq!(found.longer.len(), 6);
    let first = &found.longer[0];
    assert_eq!((first.trainings, first.epistemic.seeds), ([1, 2], 2));
    assert!(near(first.times, 100.0) && near(first.epistemic.value, -0.025), "{first:?}");
    // −0.02 and −0.03: 12.706 of 0.005.
    let interval = first.epistemic.interval.unwrap();
    assert!((interval.high - (-0.025 + 12.706_204_736 * 0.005)).abs() < 1e-8, "{interval:?}");
    assert!(near(first.gap.value, 0.025), "the Bayes error of the test images was moved by as much");
    // At N = 4,000 ten epochs are longer than 1,000 steps.
    let large =
        ExperimentSpec { grid: crate::experiment::GridSpec { train_sizes: vec![4000], ..spec.grid.clone() }, ..spec };
    let found = axes(&large, &results(&large));
    assert!(found.longer.iter().all(|longer| longer.trainings == [1, 0] && near(longer.times, 5.0)));
}

#[test]
fn the_frontier_is_beaten_by_nobody_and_beats_all_others() {
    let spec = spec(SPEC);
    let found = axes(&spec, &results(&spec));
    let counted: Vec<&AxisPoint> = found.points.iter().filter(|point| point.flops.is_some()).collect();
    assert_eq!((found.points.len(), counted.len()), (24, 16));
    let beats = |a: &AxisPoint, b: &AxisPoint| a.flops <= b.flops && a.epistemic.value < b.epistemic.value;
    for point in &counted {
        assert_eq!(point.on_frontier, !counted.iter().any(|other| beats(other, point)), "{point:?}");
    }
    assert!(found.points.iter().all(|point| point.flops.is_some() || !point.on_frontier));
    // 6 · 1,000 · 100 images twice: the least compute of all is always on the frontier.
    let least = counted.iter().min_by(|a, b| a.flops.unwrap().total_cmp(&b.flops.unwrap())).unwrap();
    assert!(least.on_frontier && near(least.flops.unwrap(), 1.2e6));
    let figures = found.figures();
    let compute = figures.iter().find(|figure| figure.id == "axes-compute").unwrap();
    assert!(compute.caption.contains(&format!("{} are not counted", Architecture::MobileNet.label())));
    let stairs = &compute.series.iter().find(|series| series.style == Style::Steps).unwrap().points;
    assert!(stairs.len() > 1 && stairs.is_sorted_by(|a, b| a.x < b.x && a.y > b.y), "{stairs:?}");
}

#[test]
fn figures_and_tables_have_what_is_there() {
    let spec = spec(SPEC);
    let all = results(&spec);
    whole_at_any_time(&spec, &all);
    let found = axes(&spec, &all);
    let ids: Vec<String> = found.figures().into_iter().map(|figure| figure.id).collect();
    let expected = [
        "axes-kl-linear-drawn",
        "axes-kl-mlp-500-drawn",
        "axes-kl-mobilenet-v3-large-drawn",
        "axes-compute",
        "axes-parameters",
        "axes-longer",
        "axes-longer-gap",
    ];
    assert_eq!(ids, expected);
    assert!(found.figures()[5].caption.contains("in 0 of 6 cases, farther in 0"), "two seeds tell nothing apart");
    // The paper's numbers stand beside its networks alone.
    let paper = |text: &str| {
        let spec = self::spec(&SPEC.replace("'linear', ", text));
        let figures = axes(&spec, &results(&spec)).figures();
        figures.iter().flat_map(|figure| &figure.series).filter(|series| series.faint).count()
    };
    assert_eq!((paper("'linear', "), paper("'resnet-18', ")), (0, 1));
    // Results without their compute have KL over N alone.
    let old: Vec<CellResult> = all.iter().map(|r| CellResult { output: None, ..r.clone() }).collect();
    assert!(axes(&spec, &old).points.iter().all(|point| point.flops.is_none() && !point.on_frontier));
}

#[test]
fn rows_of_a_form_are_read_and_what_is_no_change_is_named() {
    let spec = spec(SPEC);
    let own: &AxesSpec = spec.experiment.get().unwrap();
    let edited = |changes: &str| {
        let mut fields = own.fields();
        let Field::Rows(Rows { rows, .. }) = &mut fields[0] else { panic!("rows") };
        rows[1][1] = FormCell { input: Input::Text(changes.into(), 1.0), ..rows[1][1].clone() };
        own.with_fields(&fields)
    };
    let read = edited("epochs = 3, mirror = true").unwrap().unwrap();
    let change = &read.get::<AxesSpec>().unwrap().trainings[1].change;
    assert_eq!(change, &toml::from_str::<toml::Table>("epochs = 3\nmirror = true").unwrap());
    for wrong in ["epochs", "epochs = ", "epochs = 3 }\nother = { a = 1"] {
        assert!(edited(wrong).unwrap_err().contains("short"), "{wrong}");
    }
}

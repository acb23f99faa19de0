//! A run in a world of noisy labels: what classifiers are told, and what they are measured against.

use bayescope::data::{read_array, read_logp};
use bayescope::experiment::ExperimentSpec;
use bayescope::oracle::label_noise::LabelNoise;

use super::{run, spec};

const REST: &str = "[experiment]\nkind = 'temperature'\ntaus = [1.5]\n[grid]\narchitectures = ['linear']\ntrain_sizes = [300]\n\
                    seeds = [0]\nlabels = ['drawn', 'posterior']\n[test]\nimages = 600\nwatched = 100\n[training]\nepochs = 3\n";

#[test]
fn cells_see_noisy_labels_and_are_held_against_the_noisy_truth() {
    let place = tempfile::tempdir().unwrap();
    let (clean, noisy) = (spec(REST), spec(&format!("label_noise = 'by-class:0.3,0.1,0.5'\n{REST}")));
    let noise = LabelNoise::by_class(vec![0.3, 0.1, 0.5]).unwrap();
    let summaries = [("clean", &clean), ("noisy", &noisy)]
        .map(|(name, spec): (&str, &ExperimentSpec)| run(spec, &place.path().join(name), usize::MAX).1.unwrap());
    let pools = |name: &str| place.path().join("clean/pool").join(name);
    let names: Vec<String> = std::fs::read_dir(place.path().join("clean/pool"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".npz"))
        .collect();
    assert!(names.len() >= 2, "training and test images: {names:?}");
    for name in &names {
        let (before, after) = (pools(name), place.path().join("noisy/pool").join(name));
        // The same images of the same classes; other labels.
        assert_eq!(read_array(&before, "x").unwrap(), read_array(&after, "x").unwrap());
        assert_eq!(read_logp(&before).unwrap(), read_logp(&after).unwrap());
        let labels = [&before, &after].map(|file| read_array(file, "y").unwrap());
        let kept = labels[0].iter().zip(&labels[1]).filter(|(a, b)| a == b).count();
        let share = kept as f64 / labels[0].len() as f64;
        assert!((share - 0.7).abs() < 0.1, "{name}: {share} of the labels stayed");
        let posteriors = [&before, &after].map(|file| read_array(file, "posterior").unwrap());
        for (p, noisy) in posteriors[0].chunks(3).zip(posteriors[1].chunks(3)) {
            assert!(noise.labels(p).iter().zip(noisy).all(|(a, b)| (a - b).abs() < 1e-6), "{p:?}, {noisy:?}");
        }
    }
    let figures =
        summaries.map(|summary| summary.analysis.unwrap().get::<bayescope::experiment::Sweep>().unwrap().clone());
    let [clean, noisy] = figures.map(|sweep| sweep.worlds[0].truth.clone().unwrap().bayes_error);
    // No error is smaller than what the noise leaves, and noise only adds.
    assert!(noisy.value > 0.3 && noisy.value > clean.value + 0.03, "{clean:?}, {noisy:?}");
}

#[test]
fn a_spec_with_label_noise_reads_back_and_names_other_cells() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("flips.csv"), "0.9,0.1,0\n0,0.9,0.1\n0.1,0,0.9\n").unwrap();
    let file = place.path().join("spec.toml");
    let text = format!("name = 'tiny'\n[world]\noracle = 'tiny'\nlabel_noise = 'flips.csv'\n{REST}");
    std::fs::write(&file, text).unwrap();
    let read = ExperimentSpec::read(&file).unwrap();
    let same = toml::from_str::<ExperimentSpec>(&toml::to_string_pretty(&read).unwrap()).unwrap();
    assert_eq!(same, read);
    // The matrix is in the spec: the file is not needed any more.
    assert!(read.world.settings(3).unwrap().label_noise.unwrap().row(1, 3)[2] == 0.1);
    assert!(read.world.settings(4).unwrap_err().to_string().contains("of 3 classes"));
    std::fs::write(place.path().join("flips.csv"), "0.9,0.2,0\n0,0.9,0.1\n0.1,0,0.9\n").unwrap();
    let why = ExperimentSpec::read(&file).unwrap_err().to_string();
    assert!(why.contains("flips.csv") && why.contains("row 0"), "{why}");
    let planned = |spec: &ExperimentSpec, name: &str| {
        let folder = bayescope::run::RunFolder::create(&place.path().join(name), spec, "0123", None).unwrap();
        std::fs::read_to_string(folder.path.join("plan.jsonl")).unwrap()
    };
    assert_ne!(planned(&read, "noisy"), planned(&spec(REST), "clean"));
}

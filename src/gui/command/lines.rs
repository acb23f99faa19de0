//! What a user does as a command line.

use std::path::Path;

use super::super::guidance;
use super::super::prefs::Prefs;
use super::super::session::Session;
use crate::data::{Fit, Frame, Way};
use crate::export::ExportSpec;
use crate::flow::Precision;
use crate::flow::sampling::{Guided, SamplerOptions};
use crate::judge::Candidate;
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::posterior::Prior;
use crate::oracle::world::Settings;
use crate::run::JudgeModels;
use crate::units::Smoothing;
use crate::validate::{FeatureChoice, RealitySpec, TwoSampleSpec, ValidateSpec};

/// The gallery as a command line.
pub fn sample_command(session: &Session, prefs: &Prefs, selected: usize) -> String {
    let oracle = quote(&session.oracle_name);
    let mut text = format!("bayescope sample {oracle} --n {} --seed {}", prefs.n, prefs.seed);
    text += &knobs(prefs);
    if !prefs.products.is_wide() {
        text += &format!(" --products {}", prefs.products.name());
    }
    match guidance::options(session, prefs) {
        Some(look) => text += &format!("{} --out pictures.png", look_arguments(&look)),
        None => text += " --out samples.npz",
    }
    if selected > 1 {
        text += &format!("  # the window had {selected} of them selected");
    }
    text
}

/// The arguments of a look.
fn look_arguments(look: &SamplerOptions) -> String {
    let mut text = String::new();
    if let Some(guidance) = &look.guidance {
        let what = match guidance.what {
            Guided::A => "a",
            Guided::B => "b",
            Guided::Ab => "ab",
        };
        text += &format!(" --guidance {} --guide {what}", guidance.scale);
        if guidance.annealed {
            text += " --annealed";
        }
        if guidance.attention_temperature != 1.0 {
            text += &format!(" --attention-temperature {}", guidance.attention_temperature);
        }
    }
    text + if look.denoise { " --denoise" } else { "" }
}

pub fn export_command(spec: &ExportSpec, folder: &Path) -> String {
    let ExportSpec { oracle, train, test, settings, precision, seed, formats } = spec;
    let text = format!("bayescope export {} --train {train} --test {test}{}", quote(oracle), world(settings));
    let text = text + precision_of(*precision);
    let formats: Vec<&str> = formats.iter().map(|format| format.name()).collect();
    text + &format!(" --seed {} --format {} --out {}", seed.0, formats.join(","), quote(&folder.display().to_string()))
}

pub fn validate_command(spec: &ValidateSpec, folder: &Path) -> String {
    let path = |path: &Path| quote(&path.display().to_string());
    let ValidateSpec { oracle, data, images, limit, settings, precision, .. } = spec;
    let ValidateSpec { features, two_sample, real_statistics, threshold, seed, .. } = spec;
    let mut text = format!("bayescope oracle validate {} --data {} --images {images}", quote(oracle), path(data));
    text += &(world(settings) + precision_of(*precision));
    match features {
        FeatureChoice::Weights(weights) => text += &format!(" --features {}", path(weights)),
        FeatureChoice::OnTheSpot(spot) => text += &format!(" --feature-epochs {}", spot.epochs),
    }
    let statistics = real_statistics.as_ref().map(|file| format!(" --fid-stats {}", path(file)));
    let limit = limit.map(|limit| format!(" --limit {limit}"));
    let threshold = threshold.map(|threshold| format!(" --threshold {threshold}"));
    let usual = TwoSampleSpec::default();
    let test = (*two_sample != usual)
        .then(|| format!(" --two-sample-images {} --two-sample-epochs {}", two_sample.images, two_sample.epochs));
    text.extend([statistics, limit, threshold, test].into_iter().flatten());
    text + &format!(" --seed {} --report {}", seed.0, path(folder))
}

/// The options of a world's knobs.
fn world(settings: &Settings) -> String {
    let mut text = format!(" --tau {}", settings.tau.get());
    if settings.smoothing != Smoothing::ONE {
        text += &format!(" --smoothing {}", settings.smoothing.get());
    }
    text + &prior_of(&settings.prior) + &noise_of(settings.label_noise.as_ref())
}

/// The option of the arithmetic; nothing for the usual one.
fn precision_of(precision: Precision) -> &'static str {
    match precision {
        Precision::F32 => "",
        Precision::F64 => " --precision f64",
    }
}

/// The option of label noise; nothing where there is none.
fn noise_of(noise: Option<&LabelNoise>) -> String {
    noise.map_or_else(String::new, |noise| format!(" --label-noise {}", quote(&noise.describe())))
}

/// The option of a class prior; nothing for the uniform one.
fn prior_of(prior: &Prior) -> String {
    if *prior == Prior::uniform(prior.classes()) {
        return String::new();
    }
    weights_of(prior.probabilities())
}

/// The option of these weights, to the last digit: a rounded prior is of another world.
fn weights_of(prior: &[f64]) -> String {
    let weights: Vec<String> = prior.iter().map(f64::to_string).collect();
    format!(" --prior {}", weights.join(","))
}

pub fn reality_command(spec: &RealitySpec) -> String {
    let RealitySpec { oracle, data, prior, published, seed } = spec;
    let data = quote(&data.display().to_string());
    let mut text = format!("bayescope oracle reality {} --data {data}{}", quote(oracle), prior_of(prior));
    if let Some(published) = published {
        text += &format!(" --published-error {} --published-name {}", published.error, quote(&published.name));
    }
    text + &format!(" --seed {}", seed.0)
}

pub fn evaluate_command(request: &JudgeModels) -> String {
    let path = |path: &Path| quote(&path.display().to_string());
    let mut text = format!("bayescope evaluate {}", path(&request.dataset));
    let (mut files, mut networks, mut trained) = (String::new(), String::new(), String::new());
    let (mut input, mut architecture, mut side) = (None, None, None);
    for candidate in &request.candidates {
        match candidate {
            Candidate::Predictions { path: file, .. } => files += &format!(" {}", path(file)),
            Candidate::Onnx { path: file, options } => {
                networks += &format!(" {}", path(file));
                input = options.input.as_ref().or(input);
            }
            Candidate::Checkpoint { path: file, options } => {
                trained += &format!(" {}", path(file));
                input = options.normalisation.as_ref().or(input);
                (architecture, side) = (options.architecture.or(architecture), options.side.or(side));
            }
        }
    }
    for (option, files) in [(" --predictions", files), (" --onnx", networks), (" --checkpoint", trained)] {
        if !files.is_empty() {
            text += &(option.to_owned() + &files);
        }
    }
    let architecture = architecture.map(|network| format!(" --architecture {}", network.name()));
    let side = side.map(|pixels| format!(" --side {pixels}"));
    let input = input.map(|how| format!(" --normalisation {}", quote(&how.to_string())));
    text.extend([architecture, side, input].into_iter().flatten());
    text
}

/// The posteriors of images from outside as a command line.
pub fn posterior_command(session: &Session, prefs: &Prefs) -> String {
    let paths: Vec<String> = session.external_paths.iter().map(|path| quote(&path.display().to_string())).collect();
    let (oracle, fits) = (quote(&session.oracle_name), &session.outside.fits);
    let alone = session.external.as_ref().is_some_and(|external| external.pictures.len() == 1);
    let fit = fit_arguments(&if alone { fits.of(0) } else { fits.usual });
    let text = format!("bayescope posterior {oracle} {}{}{fit} --json", paths.join(" "), knobs(prefs));
    match fits.own.len() {
        0 => text,
        _ if alone => text,
        n => text + &format!("  # {n} of them were framed or inverted by hand in the window"),
    }
}

/// The options of how a picture gets the world's shape; none for what is usual.
fn fit_arguments(Fit { way, frame, invert }: &Fit) -> String {
    let mut text = match way {
        Way::Crop => String::new(),
        Way::Pad => " --fit pad".into(),
        Way::Stretch => " --fit stretch".into(),
        Way::None => " --fit none".into(),
    };
    if let Some(Frame { x, y, width }) = frame.filter(|_| *way == Way::Crop) {
        text += &format!(" --frame {x},{y},{width}");
    }
    text + if *invert { " --invert" } else { "" }
}

pub fn bayes_error_command(session: &Session, prefs: &Prefs) -> String {
    format!("bayescope bayes-error {}{} --json", quote(&session.oracle_name), knobs(prefs))
}

/// τ of a Bayes error as a command line.
pub fn tau_command(session: &Session, prefs: &Prefs, target: f64) -> String {
    format!("bayescope tau {} --target {target}{} --json", quote(&session.oracle_name), of_labels(prefs))
}

/// Options for the world's knobs.
pub fn knobs(prefs: &Prefs) -> String {
    format!(" --tau {}", prefs.tau) + &of_labels(prefs)
}

/// Those that labels depend on.
fn of_labels(prefs: &Prefs) -> String {
    let mut text = if prefs.smoothing == 1.0 { String::new() } else { format!(" --smoothing {}", prefs.smoothing) };
    if !prefs.prior_is_uniform() {
        text += &weights_of(&prefs.prior);
    }
    text + &noise_of(prefs.label_noise.as_ref())
}

/// For a POSIX shell.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::Format;
    use crate::units::Seed;

    #[test]
    fn commands_can_be_pasted_into_a_shell() {
        let session = Session::opening("my oracles/it's");
        let mut prefs = Prefs { prior: vec![0.5; 2], tau: 0.75, seed: 4, ..Prefs::default() };
        let text = sample_command(&session, &prefs, 0);
        assert_eq!(text, r"bayescope sample 'my oracles/it'\''s' --n 400 --seed 4 --tau 0.75 --out samples.npz");
        prefs.prior = vec![0.9, 0.1];
        prefs.label_noise = Some(LabelNoise::symmetric(0.2).unwrap());
        assert!(sample_command(&session, &prefs, 0).contains("--prior 0.9,0.1 --label-noise symmetric:0.2"));
        prefs.prior = vec![2.0 / 3.0, 1.0 / 3.0];
        let text = bayes_error_command(&session, &prefs);
        let given = text.split("--prior ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        let given: Vec<f64> = given.split(',').map(|weight| weight.parse().unwrap()).collect();
        assert_eq!(given, prefs.prior, "to the last bit");
        assert!(!text.contains("--smoothing"), "{text}");
        // E and τ of a target are those of labels drawn from p_T.
        let smoothed = Prefs { smoothing: 2.5, ..Prefs::default() };
        for text in [bayes_error_command(&session, &smoothed), tau_command(&session, &smoothed, 0.05)] {
            assert!(text.contains(" --smoothing 2.5"), "{text}");
        }
    }

    #[test]
    fn an_export_names_everything_it_depends_on() {
        let settings = Settings { prior: Prior::new(&[3.0, 1.0]).unwrap(), ..Settings::default_for(2) };
        let (oracle, formats) = ("my world".to_owned(), vec![Format::Npz, Format::Png]);
        let precision = Precision::F32;
        let spec = ExportSpec { oracle, train: 5, test: 6, settings, precision, seed: Seed(7), formats };
        let text = export_command(&spec, Path::new("/data/a b"));
        let expected = "bayescope export 'my world' --train 5 --test 6 --tau 1 --prior 0.75,0.25 --seed 7 --format npz,png --out '/data/a b'";
        assert_eq!(text, expected);
        let exact = ExportSpec { precision: Precision::F64, ..spec };
        assert!(export_command(&exact, Path::new("/data/a b")).contains(" --precision f64 --seed 7"));
    }
}

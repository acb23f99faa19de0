//! The Bayes-gap figures of one model (theory §4), on top of [`crate::measure`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::alarms::{self, Alarm, Examined, LabelCheck, examine};
use super::progress::Steps;
use super::{Compared, Kind, Note, Predictions, Truth};
use crate::error::Result;
use crate::measure::typicality::Census;
use crate::measure::{Bootstrap, Estimate, Measured, PerImage, SHARE, argmax};
use crate::units::{ClassId, Seed};

/// Images kept among the worst.
const WORST: usize = 20;

/// What a model is worth on the images of a truth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What it is called.
    pub name: String,
    /// SHA-256 of the file of its predictions; absent for those computed here.
    pub predictions_sha256: Option<String>,
    /// SHA-256 of the file of the network that was run here.
    #[serde(default)]
    pub network_sha256: Option<String>,
    /// What the predictions were.
    pub kind: Kind,
    /// What was repaired or decided while reading them, and what the export says of the posteriors.
    pub notes: Vec<Note>,
    /// Loss and its parts, accuracies, expected gap, calibration; see there.
    pub measured: Measured,
    /// 1 − mean max p: the expected error of the Bayes decision on these images.
    pub bayes_error: Estimate,
    /// Error of the Bayes decision against the drawn labels (Wilson).
    pub bayes_label_error: Estimate,
    /// The model's error less that of the Bayes decision, both against the drawn labels, paired by
    /// image. May be negative: the labels are noisy.
    pub label_gap: Estimate,
    /// Gaps of each class, by drawn label.
    pub per_class: Vec<ClassGap>,
    /// Images with the largest KL(p‖q), largest first.
    pub worst_kl: Vec<WorstImage>,
    /// Images with the largest gap max p − p(argmax q).
    pub worst_gap: Vec<WorstImage>,
    /// How the judged images stand to samples of the world, where those lie beside them.
    #[serde(default)]
    pub typicality: Option<Census>,
    /// Tests of leaks and orders, and the alarms they raised.
    pub examined: Examined,
    /// The figures of each image.
    #[serde(skip)]
    pub images: PerImage,
}

/// The gap to Bayes over the images with one drawn label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassGap {
    /// Name of the class.
    pub class: String,
    /// Images with this label.
    pub count: usize,
    /// mean (max p − p(argmax q)) over them; absent below two images.
    pub gap: Option<Estimate>,
    /// mean KL(p‖q), nats.
    pub epistemic: Option<Estimate>,
    /// mean H(p), nats.
    pub aleatoric: Option<Estimate>,
}

/// One of the worst images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorstImage {
    /// Its name, e.g. `test/000123`.
    pub image: String,
    /// Its place in the split.
    pub index: usize,
    /// Drawn label.
    pub label: String,
    /// Decision of the model.
    pub decision: String,
    /// Bayes decision.
    pub bayes: String,
    /// KL(p‖q), nats.
    pub kl: f64,
    /// max p − p(argmax q).
    pub lost: f64,
    /// max q.
    pub confidence: f64,
    /// p of the model's decision.
    pub expected: f64,
    /// q(y|x), [K]; not in reports, which would be large.
    #[serde(skip)]
    pub q: Vec<f64>,
}

/// The output of `evaluate --json` for a model: nats and fractions, and 95 % intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluated {
    /// Name of the model.
    pub name: String,
    /// Images.
    pub n: usize,
    /// mean −Σ p log q, nats.
    pub cross_entropy: f64,
    /// mean H(p), nats.
    pub aleatoric: f64,
    /// mean KL(p‖q), nats: the excess cross-entropy.
    pub epistemic: f64,
    /// Error against drawn labels.
    pub error: f64,
    /// 1 − mean max p.
    pub bayes_error: f64,
    /// mean (max p − p(argmax q)).
    pub gap: f64,
    /// Expected calibration error against drawn labels.
    pub ece: f64,
    /// The same against exact posteriors.
    pub exact_calibration_error: f64,
    /// 1 − mean p(argmax q).
    pub expected_error: f64,
    /// Error less that of the Bayes decision on the same drawn labels.
    pub label_gap: f64,
    /// Error of the Bayes decision against drawn labels.
    pub bayes_label_error: f64,
    /// mean −log q(drawn label), nats.
    pub nll: f64,
    /// 95 % interval of each figure, by its name.
    pub intervals: BTreeMap<String, [f64; 2]>,
    /// How the judged images stand to samples of the world; absent where none lie beside them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typicality: Option<Census>,
    /// What no honest model does.
    pub alarms: Vec<Alarm>,
    /// What was repaired or decided while reading, and what the export says of the posteriors, in sentences.
    pub notes: Vec<String>,
    /// Beside each other model of the report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compared_with: Vec<Compared>,
}

impl Verdict {
    /// Steps of [`Self::of`].
    pub(super) const STEPS: usize = 3 + alarms::STEPS;

    /// The figures of a model's predictions. `labels` is the check of the dataset, `seed` that of
    /// the shuffles; `steps` reports every step.
    pub(super) fn of(
        truth: &Truth,
        labels: &LabelCheck,
        model: &Predictions,
        bootstrap: &Bootstrap,
        seed: Seed,
        steps: &mut Steps<'_>,
    ) -> Result<Self> {
        let mut images = PerImage::new(truth.classes)?;
        images.extend(&truth.posterior, &model.log_q, &truth.labels)?;
        images.doubts = truth.doubts(&images.decision);
        let measured = images.measured(bootstrap)?;
        steps.step()?;
        let bayes: Vec<ClassId> = truth.posterior.chunks(truth.classes).map(argmax).collect();
        let miss = |decision: &[ClassId], i: usize| f64::from(u8::from(decision[i] != truth.labels[i]));
        let n = truth.len();
        let paired: Vec<f64> = (0..n).map(|i| miss(&images.decision, i) - miss(&bayes, i)).collect();
        let missed = (0..n).filter(|&i| bayes[i] != truth.labels[i]).count();
        let lost: Vec<f64> = (0..n).map(|i| (images.best[i] - images.expected[i]).max(0.0)).collect();
        let mut by_lost: Vec<usize> = (0..n).collect();
        by_lost.sort_by(|&a, &b| lost[b].total_cmp(&lost[a]));
        by_lost.truncate(WORST);
        let worst = |i: usize| WorstImage {
            image: truth.image_name(i),
            index: i,
            label: truth.class_names[truth.labels[i]].clone(),
            decision: truth.class_names[images.decision[i]].clone(),
            bayes: truth.class_names[bayes[i]].clone(),
            kl: images.kl[i].max(0.0),
            lost: lost[i],
            confidence: images.confidence[i],
            expected: images.expected[i],
            q: model.log_q[i * truth.classes..(i + 1) * truth.classes].iter().map(|log_q| log_q.exp()).collect(),
        };
        let label_gap = bootstrap.mean_within(&paired, [-1.0, 1.0]);
        steps.step()?;
        let per_class = per_class(truth, &measured, &lost, bootstrap);
        steps.step()?;
        let examined = examine(truth, labels, &model.log_q, &images, seed, &mut || steps.step())?;
        let mut notes = model.notes.clone();
        notes.extend(Note::infinite(truth, &model.log_q, &model.clamped));
        notes.extend(Note::rounded(truth));
        Ok(Self {
            name: model.name.clone(),
            predictions_sha256: model.sha256.clone(),
            network_sha256: model.network_sha256.clone(),
            kind: model.kind,
            notes,
            bayes_error: measured.bayes_accuracy.complement(),
            bayes_label_error: Estimate::proportion(missed, n),
            label_gap,
            per_class,
            worst_kl: images.worst(WORST).into_iter().map(worst).collect(),
            worst_gap: by_lost.into_iter().map(worst).collect(),
            typicality: truth.typicality,
            examined,
            measured,
            images,
        })
    }

    /// Alarms it raised.
    pub fn alarms(&self) -> &[Alarm] {
        &self.examined.alarms
    }

    /// What `evaluate --json` prints of this model alone.
    pub fn evaluated(&self) -> Evaluated {
        let m = &self.measured;
        let mut intervals = BTreeMap::new();
        let mut of = |name: &str, estimate: Estimate| {
            intervals.insert(name.to_owned(), [estimate.interval.low, estimate.interval.high]);
            estimate.value
        };
        Evaluated {
            name: self.name.clone(),
            n: m.n,
            cross_entropy: of("cross_entropy", m.cross_entropy),
            aleatoric: of("aleatoric", m.aleatoric),
            epistemic: of("epistemic", m.epistemic),
            error: of("error", m.error),
            bayes_error: of("bayes_error", self.bayes_error),
            gap: of("gap", m.gap),
            ece: of("ece", m.ece),
            exact_calibration_error: of("exact_calibration_error", m.exact_calibration_error),
            expected_error: of("expected_error", m.expected_accuracy.complement()),
            label_gap: of("label_gap", self.label_gap),
            bayes_label_error: of("bayes_label_error", self.bayes_label_error),
            nll: of("nll", m.nll),
            intervals,
            typicality: self.typicality,
            alarms: self.examined.alarms.clone(),
            notes: self.notes.iter().map(ToString::to_string).collect(),
            compared_with: Vec::new(),
        }
    }
}

fn per_class(truth: &Truth, measured: &Measured, lost: &[f64], bootstrap: &Bootstrap) -> Vec<ClassGap> {
    let of = |class: ClassId| {
        let here = (0..truth.len()).filter(|&i| truth.labels[i] == class);
        let lost: Vec<f64> = here.map(|i| lost[i]).collect();
        let measured = &measured.per_class[class];
        ClassGap {
            class: truth.class_names[class].clone(),
            count: lost.len(),
            gap: (lost.len() > 1).then(|| bootstrap.mean_within(&lost, SHARE)),
            epistemic: measured.epistemic,
            aleatoric: measured.aleatoric,
        }
    };
    (0..truth.classes).map(of).collect()
}

//! The commands, in an order in which each finds what an earlier one wrote.

use super::compare::{CHOSEN, CLOSE, EXACT, NOISE, TRAINED, Tolerance, WIDE};

/// One command.
pub struct Case {
    /// Name of its recording.
    pub name: &'static str,
    /// Its arguments, as on a shell without quotes; `--device cpu` stands for itself.
    pub line: &'static str,
    /// Files and folders it wrote, which are recorded too.
    pub files: &'static [&'static str],
    /// Its exit code.
    pub code: i32,
    /// How far its numbers may be apart.
    pub tolerance: Tolerance,
}

impl Case {
    /// The arguments one by one.
    pub fn args(&self) -> Vec<&'static str> {
        self.line.split_whitespace().collect()
    }
}

fn case(name: &'static str, tolerance: Tolerance, line: &'static str, files: &'static [&'static str]) -> Case {
    Case { name, line, files, code: 0, tolerance }
}

/// A command that is refused.
fn refused(name: &'static str, line: &'static str) -> Case {
    Case { code: 1, ..case(name, EXACT, line, &[]) }
}

/// All of them.
pub fn cases() -> Vec<Case> {
    [told(), samples(), worlds(), errors(), oracles(), runs(), looks(), refusals()].into_iter().flatten().collect()
}

/// What is told without computing.
fn told() -> Vec<Case> {
    vec![
        case("oracle-list", EXACT, "oracle list", &[]),
        case("oracle-list-json", EXACT, "oracle list --json", &[]),
        case("oracle-info", WIDE, "oracle info mnist@9b44f254", &[]),
        case("oracle-info-newest", WIDE, "oracle info mnist", &[]),
        case("oracle-info-notice", WIDE, "oracle info cells", &[]),
        case("oracle-info-class-map", EXACT, "oracle info worlds/animals --json", &[]),
        case("plan-list", EXACT, "plan", &[]),
        case("fetch-list", EXACT, "fetch", &[]),
        case(
            "check",
            EXACT,
            "check --classes 10 --aleatoric 0.104 --mutual-information 3.172 --bayes-error 0.0359",
            &[],
        ),
        case("check-papers", EXACT, "check --papers --json", &[]),
    ]
}

/// Samples.
fn samples() -> Vec<Case> {
    vec![
        case(
            "sample",
            CLOSE,
            "sample mnist@9b44f254 --n 8 --seed 3 --tau 0.9 --device cpu --out a.npz",
            &["a.npz", "a.npz.provenance.json"],
        ),
        case(
            "sample-sheet",
            CLOSE,
            "sample mnist@9b44f254 --n 16 --class 7 --device cpu --out sheet.png",
            &["sheet.png"],
        ),
        case(
            "sample-folder",
            CLOSE,
            "sample mnist@9b44f254 --n 12 --device cpu --out folder",
            &["folder", "folder/3/000000.png"],
        ),
        case(
            "sample-class-map",
            CLOSE,
            "sample worlds/animals --n 3 --seed 1 --device cpu --out animals.npz",
            &["animals.npz"],
        ),
    ]
}

/// Posteriors, walks, evidence and datasets.
fn worlds() -> Vec<Case> {
    vec![
        case("posterior", CLOSE, "posterior mnist@9b44f254 a.npz --tau 0.9 --device cpu", &[]),
        case("posterior-smoothed", CLOSE, "posterior mnist@9b44f254 a.npz --smoothing 5 --json --device cpu", &[]),
        case(
            "posterior-pictures",
            CLOSE,
            "posterior mnist@9b44f254 folder/3 --dequantise mean:2 --device cpu --json",
            &[],
        ),
        case("posterior-class-map", CLOSE, "posterior worlds/animals animals.npz --json --device cpu", &[]),
        case(
            "posterior-job",
            CLOSE,
            "posterior mnist@9b44f254 a.npz --out job --device cpu",
            &["job", "job/posteriors.npz", "job/posteriors.json"],
        ),
        case(
            "walk",
            CLOSE,
            "walk mnist@9b44f254 --from sample:0 --to sample:3 --steps 6 --device cpu --out way.npz --json",
            &["way.npz"],
        ),
        case(
            "walk-class",
            CLOSE,
            "walk worlds/animals --from sample:0 --to class:1 --steps 3 --device cpu --json",
            &[],
        ),
        case("evidence", CLOSE, "evidence mnist@9b44f254 a.npz --for 3 --against 5 --device cpu", &[]),
        case(
            "export",
            CLOSE,
            "export mnist@9b44f254 --train 80 --test 40 --seed 2 --format npz,png,png16,parquet --device cpu --out digits",
            &[
                "digits",
                "digits/dataset.json",
                "digits/test.npz",
                "digits/test.16bit.npz",
                "digits/parquet/test.parquet",
            ],
        ),
    ]
}

/// Predictions, Bayes errors.
fn errors() -> Vec<Case> {
    vec![
        case(
            "evaluate",
            CLOSE,
            "evaluate digits --predictions predictions.csv --device cpu --json --report judged",
            &["judged"],
        ),
        case("bayes-error", WIDE, "bayes-error mnist@9b44f254 --tau 1.2 --tolerance 0.003 --information", &[]),
        case("bayes-error-quadrature", WIDE, "bayes-error problem.json --json", &[]),
        case("bayes-error-mc", WIDE, "bayes-error problem.json --method mc --tolerance 0.005 --seed 4 --json", &[]),
        case("bayes-error-pair", WIDE, "bayes-error problem.json --method pair --tolerance 0.005 --json", &[]),
        case("bayes-error-hdr", WIDE, "bayes-error problem.json --method hdr --tolerance 0.05 --json", &[]),
        case("bayes-error-samples", CLOSE, "bayes-error worlds/animals --samples 12 --json --device cpu", &[]),
        case("tau", WIDE, "tau mnist@9b44f254 --target 5% --json", &[]),
        case("hardness", WIDE, "hardness problem.json", &[]),
        case("hardness-json", WIDE, "hardness problem.json --tau 1.5 --json", &[]),
    ]
}

/// Oracles measured, trained and compared.
fn oracles() -> Vec<Case> {
    vec![
        case("oracle-depth", CLOSE, "oracle depth mnist@9b44f254 --samples 8 --device cpu --json", &[]),
        case("oracle-precision", NOISE, "oracle precision mnist@9b44f254 --images 4 --device cpu --json", &[]),
        case(
            "oracle-validate",
            TRAINED,
            "oracle validate mnist@9b44f254 --data photographs --limit 40 --device cpu",
            &[],
        ),
        case(
            "oracle-reality",
            CLOSE,
            "oracle reality mnist@9b44f254 --data photographs --published-error 0.5% --device cpu --json",
            &[],
        ),
        case(
            "oracle-train",
            TRAINED,
            "oracle train oracle.toml --out small --device cpu --json",
            &["small", "small/oracle/oracle.json"],
        ),
        case("oracle-trained", TRAINED, "posterior small/oracle pictures/top --typicality 0 --device cpu --json", &[]),
    ]
}

/// A run of every quick preset.
fn runs() -> Vec<Case> {
    vec![
        case("plan", EXACT, "plan scaling.toml --json --out run-scaling", &["run-scaling", "run-scaling/run.toml"]),
        case("run-scaling", TRAINED, "run --plan run-scaling --device cpu", &["run-scaling"]),
        case("run-temperature", TRAINED, "run temperature.toml --out run-temperature --device cpu --json", &[]),
        case(
            "run-self-validation",
            TRAINED,
            "run self-validation.toml --out run-self-validation --device cpu --json",
            &[],
        ),
        case("run-soft-labels", TRAINED, "run soft-labels.toml --out run-soft-labels --device cpu --json", &[]),
        case("run-shift", TRAINED, "run shift.toml --out run-shift --device cpu --json", &[]),
        case("run-active-learning", CHOSEN, "run active-learning.toml --out run-active --device cpu --json", &[]),
        case("run-graders", TRAINED, "run graders.toml --out run-graders --device cpu --json", &[]),
        case("run-axes", TRAINED, "run axes.toml --out run-axes --device cpu --json", &[]),
        case("run-calibration", TRAINED, "run calibration.toml --out run-calibration --device cpu --json", &[]),
        case("run-stopping", TRAINED, "run stopping.toml --out run-stopping --device cpu --json", &[]),
        case("run-hardness", TRAINED, "run hardness.toml --out ranking --device cpu --json", &[]),
    ]
}

/// Looks at runs that have ended.
fn looks() -> Vec<Case> {
    vec![
        case("resume", TRAINED, "resume run-scaling --device cpu --json", &[]),
        case("summary", TRAINED, "summary run-scaling", &["run-scaling/summary.csv", "run-scaling/summary.json"]),
        case("summary-csv", TRAINED, "summary run-soft-labels --csv", &[]),
        case("summary-figures", TRAINED, "summary run-temperature --figures figures", &["figures"]),
        case("watch", TRAINED, "watch run-scaling --once", &[]),
        case("slurm", EXACT, "slurm run-scaling --tasks 3 --time 01:00:00 --device cpu", &[]),
    ]
}

/// Commands that are refused.
fn refusals() -> Vec<Case> {
    vec![
        refused("refused-oracle", "sample nobody --n 4 --out x.npz --device cpu"),
        refused("refused-former", "sample animals --n 4 --out x.npz --device cpu"),
        refused("refused-target", "tau mnist@9b44f254 --target 99% --json"),
        refused("refused-prior", "sample mnist@9b44f254 --n 4 --prior 1,2 --out x.npz --device cpu"),
        refused("refused-folder", "run scaling.toml --out digits --device cpu"),
        refused("refused-export", "export mnist@9b44f254 --train 8 --test 8 --seed 5 --device cpu --out digits"),
        refused("refused-run", "summary digits"),
        refused("refused-images", "posterior mnist@9b44f254 problem.json --device cpu"),
        Case { code: 2, ..refused("refused-usage", "sample mnist@9b44f254 --count 4") },
    ]
}

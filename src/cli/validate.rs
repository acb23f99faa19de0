//! `bayescope oracle validate|reality|precision|depth`.

use super::args::{Compute, PrecisionArg, RealityArgs, SamplesArgs, ValidateArgs, prior};
use super::open::{Opened, with_oracle};
use super::output::{Output, print_text};
use super::task::run_task;
use crate::device::OpenDevice;
use crate::error::Result;
use crate::export::MeasureDepth;
use crate::figure::Illustrated;
use crate::oracle::world::Settings;
use crate::task::Task;
use crate::units::Seed;
use crate::validate::{
    ComparePrecision, FeatureChoice, MeasureReality, OnTheSpot, Pairs, Published, Reality, RealitySpec, TwoSampleSpec,
    ValidateOracle, ValidateSpec, Validation, tables,
};

/// Validates an oracle.
pub fn run(args: &ValidateArgs) -> Result<()> {
    let found = with_oracle(&args.oracle, &args.compute, |opened, chosen| validate(args, opened, chosen));
    let (validation, _) = found?.found;
    args.output.print(&validation, |validation| print_text(&text(validation, args)))
}

fn validate(
    args: &ValidateArgs,
    opened: &Opened,
    chosen: &OpenDevice,
) -> Result<Illustrated<(Validation, Option<Pairs>)>> {
    let spec = ValidateSpec {
        oracle: args.oracle.clone(),
        data: args.data.clone(),
        images: args.images,
        limit: args.limit,
        settings: args.world.settings(opened.world.class_names().len())?,
        precision: args.compute.precision.into(),
        features: match &args.features {
            Some(path) => FeatureChoice::Weights(path.clone()),
            None => FeatureChoice::OnTheSpot(OnTheSpot { epochs: args.feature_epochs, ..OnTheSpot::default() }),
        },
        two_sample: TwoSampleSpec {
            images: args.two_sample_images,
            epochs: args.two_sample_epochs,
            ..TwoSampleSpec::default()
        },
        real_statistics: args.fid_stats.clone(),
        threshold: args.threshold,
        seed: Seed(args.seed),
    };
    run_task(&ValidateOracle { spec, folder: args.report.clone() }, Some(opened), chosen, "validating")
}

fn text(validation: &Validation, args: &ValidateArgs) -> String {
    let corpus = &validation.corpus;
    let mut text = format!("{} beside {}. {}\n", args.oracle, corpus.name, corpus.sentence());
    for note in &corpus.notes {
        text += &format!("note: {note}\n");
    }
    if let Some(found) = &validation.fidelity {
        let [train, held_out, generated] = found.n;
        text += &format!(
            "{generated} generated and {held_out} held-out images against {train} training images; FID against {}\nfeatures: {}\n\
             copies: training images are compared {}\n",
            found.fid_against, found.features.name, found.near.forms_from
        );
    }
    for table in tables(validation) {
        text += &format!("\n{}", table.text());
    }
    if validation.fidelity.is_none() {
        text += "\nAdd --images 2000 to compare samples with the real images: FID, coverage, memorisation.\n";
    }
    if let Some(folder) = &args.report {
        text += &format!("\nThe report is in {}\n", folder.display());
    }
    text
}

/// Holds an oracle's decisions against labels of real images.
pub fn reality(args: &RealityArgs) -> Result<()> {
    let found = with_oracle(&args.oracle, &args.compute, |opened, chosen| {
        let name = args.published_name.clone();
        let spec = RealitySpec {
            oracle: args.oracle.clone(),
            data: args.data.clone(),
            prior: prior(args.prior.as_deref(), opened.world.class_names().len())?,
            published: args.published_error.map(|error| Published { name, error }),
            seed: Seed(args.seed),
        };
        run_task(&MeasureReality { spec }, Some(opened), chosen, "deciding")
    })?;
    args.output.print(&found.found, |found| print_text(&told(found)))
}

fn told(found: &Reality) -> String {
    let mut text = format!("{} on {}\n", found.spec.oracle, found.corpus);
    text.extend(found.notes.iter().map(|note| format!("note: {note}\n")));
    text.extend(found.tables().iter().map(|table| format!("\n{}", table.text())));
    text.push('\n');
    text.extend(found.findings.iter().map(|finding| format!("{}\n", finding.sentence)));
    text
}

/// Compares an oracle with itself in 64 bits.
pub fn precision(images: usize, args: SamplesArgs) -> Result<()> {
    let task = |settings, seed| ComparePrecision { images, settings, seed };
    let (report, output) = on_samples(args, "comparing", task)?;
    output.print(&report.found, |found| print_text(&found.table().text()))
}

/// Measures what pictures keep of a world's posteriors.
pub fn depth(samples: usize, args: SamplesArgs) -> Result<()> {
    let task = |settings, seed| MeasureDepth { samples, settings, seed };
    let (report, output) = on_samples(args, "comparing pictures", task)?;
    output.print(&report.found, |found| print_text(&found.table().text()))
}

/// The report of a task on samples of an oracle.
fn on_samples<T: Task>(
    SamplesArgs { oracle, world, seed, device, output }: SamplesArgs,
    title: &str,
    task: impl Fn(Settings, Seed) -> T,
) -> Result<(T::Report, Output)> {
    let compute = Compute { device, precision: PrecisionArg::F32 };
    let report = with_oracle(&oracle, &compute, |opened, chosen| {
        let settings = world.settings(opened.world.class_names().len())?;
        run_task(&task(settings, Seed(seed)), Some(opened), chosen, title)
    })?;
    Ok((report, output))
}

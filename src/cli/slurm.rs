//! `bayescope slurm`.

use std::path::{Path, PathBuf};

use super::args::SlurmArgs;
use super::output::print_text;
use super::program::{Start, later};
use crate::device::DeviceChoice;
use crate::error::{Error, Result};
use crate::oracle::folder::{descriptions_beside, refusal};
use crate::oracle::library;
use crate::run::RunFolder;
use crate::run::slurm::{Resources, Script, StageIn, few_tasks, script};

/// Prints the script, and makes the folder of its logs: Slurm does not.
pub fn run(args: &SlurmArgs) -> Result<()> {
    let folder = RunFolder::open(&args.run)?;
    let run = absolute(&args.run)?;
    let oracle = &folder.spec.world.oracle;
    let former = library::former(oracle).and_then(|_| refusal(oracle, None));
    let oracle = match (library::find(oracle), former) {
        (Some(_), _) => None,
        (None, Some(refused)) => return Err(refused),
        (None, None) => Some(existing(Path::new(oracle))?),
    };
    let Start { program, leading } = match &args.bayescope {
        Some(program) => existing(program)?.into(),
        None => later()?,
    };
    let device = Some(args.device.device).filter(|device| *device != DeviceChoice::Auto);
    let text = script(&Script {
        name: folder.spec.name.clone(),
        run: run.clone(),
        program,
        leading,
        descriptions: oracle.as_deref().map(descriptions_beside).unwrap_or_default(),
        oracle,
        tasks: args.tasks.unwrap_or_else(|| few_tasks(folder.plan.len())),
        device: device.map(|device| device.to_string()),
        stage: match &args.stage {
            None => StageIn::Auto,
            Some(none) if none == Path::new("none") => StageIn::None,
            Some(folder) => StageIn::Folder(absolute(folder)?),
        },
        resources: Resources {
            time: args.time.clone(),
            partition: args.partition.clone(),
            gres: args.gres.clone(),
            cpus: args.cpus,
            mem: args.mem.clone(),
            account: args.account.clone(),
        },
    })?;
    let logs = run.join("slurm");
    std::fs::create_dir_all(&logs).map_err(|e| Error::io(&logs, e))?;
    print_text(&text)
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|e| Error::io(path, e))
}

/// The absolute path of what is there: a slip is cheaper here than in a queue.
fn existing(path: &Path) -> Result<PathBuf> {
    match path.try_exists() {
        Ok(true) => absolute(path),
        Ok(false) => Err(Error::file(path, "is not there")),
        Err(e) => Err(Error::io(path, e)),
    }
}

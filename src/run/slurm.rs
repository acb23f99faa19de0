//! A job array of Slurm for a planned run: a text to read, change and hand to `sbatch`.
//!
//! Every element of the array is one long task that takes the cells of `--task I --of N` in turn.
//! Slurm warns it before its time is over. The script passes the warning on, the program writes a
//! checkpoint and ends with [`STOPPED`], and the script queues its element again.

mod text;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use text::{directive, word};

/// Exit status of a program that a signal stopped after a checkpoint: EX_TEMPFAIL, try again.
pub const STOPPED: u8 = 75;
/// Seconds before the end of its time at which an element is warned.
pub const WARNING_SECS: u64 = 120;
/// Shortest useful time: Slurm may warn a minute early, and some work should be done before.
const MIN_SECS: u64 = WARNING_SECS + 60 + 60;
/// Elements of an array, at most, where nobody says how many.
const FEW: usize = 8;

/// What a script is written from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Name of the job.
    pub name: String,
    /// Folder of the run, absolute.
    pub run: PathBuf,
    /// The program, absolute.
    pub program: PathBuf,
    /// What comes before its own arguments: `-m bayescope`, where the program is Python.
    pub leading: Vec<String>,
    /// The oracle's file or folder, absolute; none where the program carries it.
    pub oracle: Option<PathBuf>,
    /// What describes its file beside it, absolute: the file alone may open as another world.
    #[serde(default)]
    pub descriptions: Vec<PathBuf>,
    /// Elements of the array.
    pub tasks: usize,
    /// What the program is to compute on, if it shall not choose.
    pub device: Option<String>,
    /// Where copies of what is read often are kept.
    pub stage: StageIn,
    /// What is asked of Slurm.
    pub resources: Resources,
}

/// What an element asks of Slurm; where nothing is said, the cluster's defaults hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Longest time of an element at a stretch, as Slurm writes it.
    pub time: Option<String>,
    /// Partition.
    pub partition: Option<String>,
    /// Generic resources, such as `gpu:1`.
    pub gres: Option<String>,
    /// Processors.
    pub cpus: Option<usize>,
    /// Memory, such as `16G`.
    pub mem: Option<String>,
    /// Account that pays.
    pub account: Option<String>,
}

/// Where an element keeps copies of what lies on the network file system.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageIn {
    /// In `$SLURM_TMPDIR` or `$TMPDIR`, where the node has one.
    #[default]
    Auto,
    /// In this folder of the node.
    Folder(PathBuf),
    /// Nowhere.
    None,
}

/// Default number of elements for so many cells: few and long, because each loads the oracle and
/// queues.
pub fn few_tasks(cells: usize) -> usize {
    cells.clamp(1, FEW)
}

/// The array script.
///
/// # Errors
/// When a value cannot stand in a script: no tasks, a time too short to be warned in, a path that
/// is not absolute.
pub fn script(of: &Script) -> Result<String> {
    if of.tasks == 0 {
        return Err(Error::input("an array needs at least one task"));
    }
    if let Some(time) = &of.resources.time {
        check_time(time)?;
    }
    Ok([header(of)?, beginning(of)?, SIGNALS.into(), staging(of)?, ENDING.into()].concat())
}

fn header(of: &Script) -> Result<String> {
    let Script { tasks, resources: Resources { time, partition, gres, cpus, mem, account }, .. } = of;
    let log = of.run.join("slurm").display().to_string().replace('%', "%%") + "/%A_%a.log";
    let name: String = of.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let mut text = format!(
        "#!/bin/bash\n\
         # A run of bayescope {} as a job array of {tasks}. Submit it with `sbatch`, again whenever elements have failed or were\n\
         # cancelled: finished cells are skipped. Made by `bayescope slurm`; change what your cluster wants otherwise.\n",
        env!("CARGO_PKG_VERSION")
    );
    let cpus = cpus.map(|cpus| cpus.to_string());
    let (array, signal) = (format!("0-{}", tasks - 1), format!("B:USR1@{WARNING_SECS}"));
    let directives = [
        ("job-name", Some(&name)),
        ("array", Some(&array)),
        ("output", Some(&log)),
        ("time", time.as_ref()),
        ("partition", partition.as_ref()),
        ("account", account.as_ref()),
        ("gres", gres.as_ref()),
        ("cpus-per-task", cpus.as_ref()),
        ("mem", mem.as_ref()),
        ("signal", Some(&signal)),
    ];
    for (option, value) in directives {
        if let Some(value) = value {
            text += &directive(option, value)?;
        }
    }
    Ok(text + "#SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --open-mode=append\n#SBATCH --requeue\n\n")
}

fn beginning(of: &Script) -> Result<String> {
    let device = of.device.as_deref().map(word).transpose()?;
    let leading = of.leading.iter().map(|text| Ok(format!(" {}", word(text)?))).collect::<Result<String>>()?;
    Ok(format!(
        "set -u\n\
         bayescope=({}{leading})\n\
         run={}\n\
         element=\"${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}\"\n\
         arguments=(run --plan \"$run\" --task \"$SLURM_ARRAY_TASK_ID\" --of {}{})\n\
         # One thread for every processor that Slurm gives, not for every one of the node.\n\
         export RAYON_NUM_THREADS=\"${{SLURM_CPUS_PER_TASK:-${{SLURM_CPUS_ON_NODE:-1}}}}\"\n\
         # `module load` and the like: here.\n\n",
        absolute(&of.program)?,
        absolute(&of.run)?,
        of.tasks,
        device.map_or(String::new(), |device| format!(" --device {device}")),
    ))
}

/// Signals and what they set in motion.
const SIGNALS: &str = r#"say() { echo "$(date '+%F %T') element $element: $*"; }
say "on $(hostname), start $((${SLURM_RESTART_COUNT:-0} + 1))"

# The warning before the end of the time (USR1), preemption (TERM) and whatever else a site sends goes on to the program.
program=
signalled=
hand_on() {
    signalled=$1
    say "signal $1: a checkpoint, then an end"
    if [ -n "$program" ]; then kill -s "$1" "$program" 2>/dev/null; fi
}
trap 'hand_on USR1' USR1
trap 'hand_on USR2' USR2
trap 'hand_on TERM' TERM

"#;

/// Runs the program, waits for it, and queues the element again if a signal ended it.
const ENDING: &str = r#"status=75
if [ -z "$signalled" ]; then
    "${bayescope[@]}" "${arguments[@]}" &
    program=$!
    # A signal that came before the program had a number.
    if [ -n "$signalled" ]; then kill -s "$signalled" "$program" 2>/dev/null; fi
    # A trapped signal ends `wait` early: the program's own end is what counts.
    while kill -0 "$program" 2>/dev/null; do wait "$program"; done
    wait "$program"
    status=$?
    # So early that the program did not listen yet: nothing was begun, nothing is lost.
    if [ -n "$signalled" ] && [ "$status" -eq $((128 + $(kill -l "$signalled"))) ]; then status=75; fi
fi

# 75: stopped by a signal after a checkpoint. Anything else is an end, good or bad, that another start would not change.
if [ "$status" -eq 75 ]; then
    # Slurm ends this script while it queues the element again.
    trap '' TERM
    # Who cancels an element means it, and Slurm itself queues what it preempts: in both cases it is no longer running. Slurm
    # would requeue a cancelled one, too.
    if [[ "$(scontrol show job "$element")" == *JobState=RUNNING* ]] && scontrol requeue "$element"; then
        say "back in the queue"
        exit 0
    fi
    say "not queued again from here; submit the script again if it does not go on"
fi
say "ended with status $status"
exit "$status"
"#;

fn staging(of: &Script) -> Result<String> {
    let oracle = of.oracle.as_deref().map(absolute).transpose()?;
    let place = match &of.stage {
        StageIn::Auto => "\"${SLURM_TMPDIR:-${TMPDIR:-}}\"".to_owned(),
        StageIn::Folder(folder) => absolute(folder)?,
        StageIn::None => {
            return Ok(oracle.map_or(String::new(), |oracle| format!("arguments+=(--oracle {oracle})\n\n")));
        }
    };
    let mut text = format!(
        "# Stage-in to the node's own disk, where there is one. The program copies the run's images there as its cells need them\n\
         # (--stage); drawn images and results go to the run's folder, for all elements.\n\
         place={place}\n"
    );
    if let StageIn::Folder(_) = of.stage {
        text += "mkdir -p -- \"$place\"\n";
    }
    text += "stage=\n\
             if [ -n \"$place\" ] && [ -d \"$place\" ] && stage=$(mktemp -d -- \"$place/bayescope-$element.XXXXXX\"); then\n    \
             trap 'rm -rf -- \"$stage\"' EXIT\n    \
             arguments+=(--stage \"$stage/pool\")\nfi\n";
    if let Some(oracle) = oracle {
        let mut copied = "\"$oracle\"".to_owned();
        for description in &of.descriptions {
            copied += " ";
            copied += &absolute(description)?;
        }
        text += &format!(
            "oracle={oracle}\n\
             if [ -n \"$stage\" ] && mkdir \"$stage/oracle\" && cp -rL -- {copied} \"$stage/oracle/\"; then\n    \
             oracle=\"$stage/oracle/$(basename -- \"$oracle\")\"\nfi\n\
             arguments+=(--oracle \"$oracle\")\n"
        );
    }
    Ok(text + "\n")
}

/// A path as a word of the shell.
fn absolute(path: &Path) -> Result<String> {
    match path.to_str() {
        Some(text) if path.is_absolute() => word(text),
        Some(_) => Err(Error::file(path, "a script for other machines needs absolute paths")),
        None => Err(Error::file(path, "this name is no valid Unicode and cannot stand in a script")),
    }
}

/// Checks that a time is Slurm's (M, M:S, H:M:S, D-H, D-H:M, D-H:M:S) and leaves time for a
/// warning.
fn check_time(time: &str) -> Result<()> {
    let (days, rest) = time.split_once('-').map_or((None, time), |(days, rest)| (Some(days), rest));
    let numbers = |text: &str| text.split(':').map(|part| part.parse::<u32>().ok()).collect::<Option<Vec<u32>>>();
    let parts = numbers(rest).zip(days.map_or(Some(0), |days| days.parse::<u32>().ok()));
    let seconds = parts.and_then(|(parts, day)| {
        let units: &[u64] = match (days.is_some(), parts.len()) {
            (true, 1..=3) => &[3600, 60, 1],
            (false, 1 | 2) => &[60, 1],
            (false, 3) => &[3600, 60, 1],
            _ => return None,
        };
        Some(u64::from(day) * 86_400 + parts.iter().zip(units).map(|(&part, unit)| u64::from(part) * unit).sum::<u64>())
    });
    match seconds {
        Some(seconds) if seconds >= MIN_SECS => Ok(()),
        Some(_) => Err(Error::input(format!(
            "a time of {time} is too short: elements are warned {WARNING_SECS} seconds before its end; give at least {} minutes",
            MIN_SECS / 60
        ))),
        None => Err(Error::input(format!("'{time}' is no time; write HH:MM:SS or D-HH:MM:SS"))),
    }
}

#[cfg(test)]
mod tests;

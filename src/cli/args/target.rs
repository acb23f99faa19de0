//! A Bayes error that stands in place of τ.

use clap::Args;

use super::{count, number};
use crate::bayes::sampling::Limits;

/// The Bayes error that a world is to have.
#[derive(Debug, Clone, Copy, Args)]
pub struct TargetArgs {
    /// The Bayes error the world is to have, such as 0.05 or 5%, in place of --tau. Where the map depends on the class it is met to
    /// the error of samples.
    #[arg(long, value_name = "ERROR", value_parser = super::bayes::fraction, allow_hyphen_values = true, conflicts_with = "tau")]
    pub target: Option<f64>,
    /// Half width of the 95 % interval of the τ that --target finds by samples, relative; 0.03 if neither this nor
    /// --samples is given.
    // --tau rules --target out, which is then not required.
    #[arg(long, requires = "target", conflicts_with = "tau", value_parser = number, allow_negative_numbers = true)]
    pub tolerance: Option<f64>,
    /// With --target: draw so many images of the world at each τ (at most so many with --tolerance); 20000 at most if no limit
    /// is given.
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub samples: Option<usize>,
    /// With --target: seconds of the search for τ; without limit if not given. How far they reach depends on the machine.
    #[arg(long, value_name = "SECONDS", value_parser = number, allow_negative_numbers = true)]
    pub budget: Option<f64>,
}

impl TargetArgs {
    /// Whether the search is given draws or a time.
    pub fn is_limited(&self) -> bool {
        self.samples.is_some() || self.budget.is_some()
    }

    /// What ends the search. By default no time does, so that the same command finds the same τ again and goes on.
    pub fn limits(&self) -> Limits {
        Limits::asked(self.tolerance, self.samples, self.budget, true)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::args::Cli;

    #[test]
    fn help_names_the_limits_that_hold_where_none_is_given() {
        let help = |command: &str, name: &str| {
            let cli = Cli::command();
            let command = command.split(' ').fold(&cli, |of, name| of.find_subcommand(name).unwrap());
            command.get_arguments().find(|arg| arg.get_id() == name).unwrap().get_help().unwrap().to_string()
        };
        let none = |repeatable| Limits::asked(None, None, None, repeatable);
        let (timed, counted) = (none(false), none(true));
        let (seconds, samples, tolerance) =
            (timed.seconds.unwrap(), counted.samples.unwrap(), timed.tolerance.unwrap());
        assert_eq!((timed.samples, counted.seconds, counted.tolerance), (None, None, timed.tolerance));
        for command in ["tau", "bayes-error", "hardness"] {
            let told = help(command, "budget");
            assert!(told.contains(&format!("{seconds} if no limit is given")), "{told}");
            assert!(told.contains(&format!("{samples} images with --reproducible")), "{told}");
            assert!(help(command, "tolerance").contains(&format!("{tolerance} where")));
        }
        for command in ["export", "external start"] {
            assert!(help(command, "budget").contains("without limit if not given"));
            assert!(help(command, "samples").contains(&format!("{samples} at most if no limit is given")));
            assert!(help(command, "tolerance").contains(&format!("{tolerance} if")));
        }
    }
}

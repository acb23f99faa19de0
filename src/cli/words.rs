//! The words of a command line around clap: options in front of a command, first words that are nothing, and an
//! oracle that was left out.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use super::args::Cli;
use crate::error::{Error, Result, did_you_mean, in_line};
use crate::oracle::{folder, library};

/// Options that may stand before a command as well as after it: with a value, and without.
const WITH_VALUE: &str = "--device";
const ALONE: [&str; 2] = ["--reproducible", "--force"];

/// The words with what stands before the command put behind it, where clap finds it: in front of a
/// command it takes options for those of the window, and the command for a file.
///
/// # Errors
/// When the first word is no command, no bundled world and no file.
pub fn arranged(mut words: Vec<OsString>) -> Result<Vec<OsString>> {
    let place = leading(&words);
    let Some(first) = words.get(place).cloned() else { return Ok(words) };
    let command = Cli::command();
    let name = first.to_string_lossy();
    let commands = || command.get_subcommands().map(clap::Command::get_name).chain(["help"]);
    if commands().any(|known| known == name) {
        let options: Vec<OsString> = words.drain(1..place).collect();
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        words.splice(end..end, options);
        return Ok(words);
    }
    if name.starts_with('-') {
        return Ok(words);
    }
    exists(Path::new(&first), commands()).map(|()| words)
}

/// The words as clap understands them. Ends the process where they cannot be used, or ask for help.
///
/// # Errors
/// When an oracle was left out in front of what is no oracle.
pub fn parsed(words: &[OsString]) -> Result<Cli> {
    Cli::try_parse_from(words).or_else(|error| match without_oracle(&error, words) {
        Some(said) => Err(said),
        None => error.exit(),
    })
}

/// What is said where clap takes the only input for the oracle, and misses an input.
fn without_oracle(error: &clap::Error, words: &[OsString]) -> Option<Error> {
    let misses_input = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.iter().any(|name| name.starts_with("<INPUT>")),
        _ => false,
    };
    if error.kind() != ErrorKind::MissingRequiredArgument || !misses_input {
        return None;
    }
    let matches = Cli::command().ignore_errors(true).try_get_matches_from(words).ok()?;
    let (command, given) = matches.subcommand()?;
    let input: &String = given.try_get_one("oracle").ok()??;
    let refused = folder::refusal(input, None).filter(|_| Path::new(input).exists())?;
    let world = library::names().into_iter().next()?;
    Some(Error::input(format!(
        "{command} takes ORACLE INPUT: of which world? {refused}; as in `bayescope {command} {world} {}`",
        in_line(input)
    )))
}

/// Where the first word stands that is none of the options in front.
fn leading(words: &[OsString]) -> usize {
    let mut place = 1;
    while let Some(word) = words.get(place).and_then(|word| word.to_str()) {
        place += match word {
            WITH_VALUE => 2,
            _ if ALONE.contains(&word) => 1,
            _ if word.strip_prefix(WITH_VALUE).is_some_and(|rest| rest.starts_with('=')) => 1,
            _ => break,
        };
    }
    place
}

/// Whether there is something to open at a path or by a name.
///
/// # Errors
/// When there is not: says what may have been meant.
pub fn exists<'a>(path: &Path, commands: impl Iterator<Item = &'a str>) -> Result<()> {
    let name = path.to_string_lossy();
    if path.exists() || library::find(&name).is_some() {
        return Ok(());
    }
    if let Some(refused) = library::former(&name).and_then(|_| folder::refusal(&name, None)) {
        return Err(refused);
    }
    let meant = did_you_mean(&name, commands.chain(library::names()));
    let worlds = library::names().join(", ");
    Err(Error::input(format!(
        "'{name}' is no command, no bundled world ({worlds}) and no file{meant}; `bayescope --help` lists the commands"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrange(line: &str) -> Result<String> {
        let words = arranged(line.split(' ').map(OsString::from).collect())?;
        Ok(words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn options_in_front_of_a_command_go_behind_it() {
        for (given, wanted) in [
            ("b --device cpu sample mnist --n 4", "b sample mnist --n 4 --device cpu"),
            ("b --device=cpu --force oracle depth mnist", "b oracle depth mnist --device=cpu --force"),
            ("b --reproducible sample mnist -- x", "b sample mnist --reproducible -- x"),
            ("b sample mnist --device cpu", "b sample mnist --device cpu"),
            // The window has its own, and clap says what is wrong with the rest.
            ("b --device cpu mnist", "b --device cpu mnist"),
            ("b --device", "b --device"),
            ("b --nonsense sample", "b --nonsense sample"),
            ("b", "b"),
        ] {
            assert_eq!(arrange(given).unwrap(), wanted);
        }
    }

    #[test]
    fn an_oracle_that_was_left_out_is_missed() {
        let folder = tempfile::tempdir().unwrap();
        let [picture, weights] = ["a.png", "a.pth"].map(|name| {
            let path = folder.path().join(name);
            crate::data::write_atomically(&path, |file| file.write_all(b"x")).unwrap();
            path.display().to_string()
        });
        let said = |line: &[&str]| {
            let words: Vec<OsString> = line.iter().map(OsString::from).collect();
            without_oracle(&Cli::try_parse_from(&words).unwrap_err(), &words).map(|error| error.to_string())
        };
        for command in ["posterior", "evidence"] {
            let said = said(&["b", command, "--tau", "2", &picture, "--json"]).unwrap();
            assert!(said.starts_with(&format!("{command} takes ORACLE INPUT: of which world?")), "{said}");
            assert!(said.contains("is a picture") && said.ends_with(&format!("{command} mnist {picture}`")), "{said}");
        }
        // The rest is clap's: an oracle alone, a file that is not there, nothing, a file after an option, another mistake.
        for line in [
            &["b", "posterior", "mnist"][..],
            &["b", "posterior", &weights],
            &["b", "posterior", "nosuch.png"],
            &["b", "posterior"],
            &["b", "posterior", "--out", &picture],
            &["b", "posterior", &picture, "--nonsense"],
            &["b", "sample", &picture],
        ] {
            assert_eq!(said(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_first_word_that_is_nothing_is_no_window() {
        let refused = |line: &str| arrange(line).unwrap_err().to_string();
        assert!(refused("b sampel mnist --n 4").contains("did you mean sample?"));
        assert!(refused("b --device cpu MNIST").contains("did you mean mnist?"));
        assert!(refused("b nosuch.png").contains("no file"));
        assert!(refused("b animals").contains("tests/worlds/animals"));
    }
}

//! Values as words of a shell and of `#SBATCH` lines.

use crate::error::{Error, Result};

/// A word of the shell that stands for exactly this text.
pub fn word(text: &str) -> Result<String> {
    printable(text)?;
    let plain = !text.is_empty() && text.chars().all(is_plain);
    Ok(if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) })
}

/// A line for `sbatch`, which reads quotes but no variables. In double quotes a backslash escapes a
/// quote or a backslash; outside it does not even keep a space (Slurm 22.05).
pub fn directive(option: &str, value: &str) -> Result<String> {
    printable(value)?;
    if value.is_empty() {
        return Err(Error::input(format!("--{option} is empty")));
    }
    let plain = value.chars().all(is_plain);
    let quoted = || format!("\"{}\"", value.replace('\\', r"\\").replace('"', r#"\""#));
    Ok(format!("#SBATCH --{option}={}\n", if plain { value.to_owned() } else { quoted() }))
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_./:@%+,=-".contains(c)
}

/// A line break would end the line and begin another, of whatever follows it.
fn printable(text: &str) -> Result<()> {
    match text.chars().any(char::is_control) {
        true => Err(Error::input(format!("{text:?} holds a line break or another control character"))),
        false => Ok(()),
    }
}

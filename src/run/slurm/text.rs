//! Values as words of a shell and of `#SBATCH` lines.

use crate::error::{Error, Result};

/// A word of the shell that stands for exactly this text.
pub fn word(text: &str) -> Result<String> {
    printable(text)?;
    let plain = !text.is_empty() && text.chars().all(is_plain);
    Ok(if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) })
}

/// A line for `sbatch`, which reads quotes and backslashes but no variables. A backslash works alike in and out of quotes
/// there, unlike in a shell: so only backslashes are used.
pub fn directive(option: &str, value: &str) -> Result<String> {
    printable(value)?;
    if value.is_empty() {
        return Err(Error::input(format!("--{option} is empty")));
    }
    let escaped = |c: char| if is_plain(c) || !c.is_ascii() { format!("{c}") } else { format!("\\{c}") };
    Ok(format!("#SBATCH --{option}={}\n", value.chars().map(escaped).collect::<String>()))
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

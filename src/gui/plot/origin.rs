//! Where the numbers of a plot of the open world come from.

use crate::gui::session::Session;

/// World and program, and what else there is to say.
pub fn of_world<const N: usize>(session: &Session, more: [(&str, String); N]) -> Vec<(String, String)> {
    let world = session
        .oracle
        .iter()
        .flat_map(|oracle| [("world", oracle.name.clone()), ("weights SHA-256", oracle.weights_sha256.clone())]);
    let program = [("program", format!("bayescope {}", env!("CARGO_PKG_VERSION")))];
    world.chain(more).chain(program).map(|(name, value)| (name.to_owned(), value)).collect()
}

//! Images from outside: mapped in, scored, shown, and entered into the ledger.

use super::context::JobContext;
use crate::error::Result;
use crate::flow::preprocess::Dequantisation;
use crate::oracle::pictures::{Picture, Reading, summary};
use crate::oracle::world::Settings;
use crate::provenance::{Badge, Made};
use crate::worker::protocol::Event;

/// Pictures that get a line each in the ledger; more get one together.
const LINES: usize = 8;

/// Computes the posteriors of what was read and shows the images; a sentence about them.
pub fn classify(cx: &JobContext<'_>, reading: Reading, settings: &Settings) -> Result<String> {
    let images = cx.opened()?.world.classify(reading, Dequantisation::default(), &mut cx.sink())?;
    let done = lines(&images.name, &images.ids, &images.pictures);
    let how = images.dequantisation.map(|how| how.to_string()).unwrap_or_default();
    let sentence = cx.show(images, settings)?;
    for (name, what) in done {
        let provenance = cx.opened()?.info.provenance(Badge::Exact, settings);
        let provenance = provenance.with("picture", what).with("8-bit pixels dequantised by", &how);
        let made = Made { what: format!("posterior of {name}"), place: None, provenance };
        cx.channels.send(Event::Made(Box::new(made)));
    }
    Ok(sentence)
}

/// What was done, with the name of the picture or of all together.
fn lines(name: &str, ids: &[String], pictures: &[Picture]) -> Vec<(String, String)> {
    if pictures.len() > LINES {
        return summary(pictures).map(|done| (name.to_owned(), done)).into_iter().collect();
    }
    ids.iter().zip(pictures).map(|(id, picture)| (id.clone(), picture.treatment.describe())).collect()
}

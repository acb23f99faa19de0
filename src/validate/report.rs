//! The folder of a validation: page, figures, tables, nearest pairs and all numbers.

use std::path::{Path, PathBuf};

use super::figures::provenance;
use super::pieces::VALIDATION;
use super::{Pairs, Validation, figures, tables};
use crate::data::{Store, contact_sheet, encode_png, write_named};
use crate::error::{Error, Result};
use crate::figure::Page;

/// Pairs on a line of the sheet.
const COLUMNS: usize = 8;
/// Side of a pixel on the sheet.
const SCALE: usize = 2;

/// Writes `validation.md`, `validation.json`, every figure (SVG, CSV), every table (CSV) and the
/// sheets of nearest pairs into `folder`, each file atomically and the page last. Then removes the
/// kept pieces. Returns the files written.
///
/// # Errors
/// Names the file that cannot be written.
pub fn write_report(folder: &Path, validation: &Validation, pairs: Option<&Pairs>) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    let mut files = Vec::new();
    let mut head = head(validation);
    if let Some(fidelity) = &validation.fidelity {
        head += &format!("\nCopies: training images are compared {}.\n", fidelity.near.forms_from);
    }
    if let Some(Pairs { shape, pairs }) = pairs {
        for (name, set) in [("pairs-generated", &pairs.generated), ("pairs-held-out", &pairs.held_out)] {
            let pixels: Vec<u8> = set.iter().flat_map(|pair| pair.pixels.concat()).collect();
            let (sheet, pixels) = contact_sheet(*shape, &pixels, 2 * COLUMNS, SCALE)?;
            files.push((format!("{name}.png"), encode_png(sheet, &pixels)?));
        }
        head += "\nNearest pairs, the image left and its nearest training image right, in the form that is nearest; nearest pair first. Generated, then held-out:\n\n\
                 ![Generated](pairs-generated.png)\n\n![Held-out](pairs-held-out.png)\n";
    }
    let json = serde_json::to_string_pretty(validation).map_err(|e| Error::Numeric(format!("validation.json: {e}")))?;
    files.push(("validation.json".into(), json.into_bytes()));
    let page = Page {
        name: "validation.md".into(),
        head,
        figures: figures(validation),
        tables: tables(validation),
        provenance: provenance(validation),
    };
    files.extend(page.files());
    let written = files.into_iter().map(|(name, bytes)| write_named(folder, &name, &bytes)).collect::<Result<_>>()?;
    Store::of(Some(folder), &VALIDATION).finish();
    Ok(written)
}

fn head(v: &Validation) -> String {
    let mut page = format!("# {} beside {}\n\n{}\n", v.spec.oracle, v.corpus.name, v.corpus.sentence());
    for note in &v.corpus.notes {
        page += &format!("* {note}\n");
    }
    page
}

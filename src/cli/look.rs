//! Pictures of `sample` that leave the world.

use super::open::Opened;
use crate::events::silent;
use crate::oracle::provenance::keep;
use std::path::Path;

use serde::Serialize;

use super::output::print_json;
use super::progress::Bar;
use crate::error::Result;
use crate::flow::sampling::{Guidance, SamplerOptions};
use crate::oracle::look::save_pictures_with;
use crate::oracle::world::{SampleSpec, Settings};

#[derive(Serialize)]
struct Report<'a> {
    file: String,
    badge: &'a str,
    pictures: usize,
    guidance: Option<Guidance>,
    denoise: bool,
    spec: SampleSpec,
    settings: &'a Settings,
}

/// Writes pictures and says what they are.
pub fn run(
    opened: &Opened,
    spec: SampleSpec,
    settings: &Settings,
    look: &SamplerOptions,
    out: &Path,
    json: bool,
) -> Result<()> {
    let pictures = save_pictures_with(&opened.world, &spec, &[], settings, look, out, &mut Bar::new("sampling"))?;
    let provenance = opened.info.of_pictures(&spec, &[], settings, look);
    keep(out, "pictures with a look", provenance, &opened.machine, &mut silent())?;
    let file = out.display().to_string();
    if json {
        let SamplerOptions { guidance, denoise } = *look;
        return print_json(&Report { file, badge: "illustrative", pictures, guidance, denoise, spec, settings });
    }
    println!("{file}: {pictures} pictures, illustrative: they have left the world and have no posterior");
    Ok(())
}

//! Worlds of one flow per class (BLC §2.1 trains "separate flows per class"): a folder with
//! `flows.json` and K checkpoints.
//!
//! ```json
//! { "name": "afhq", "classes": [ { "name": "cat", "file": "cat_model_8_768_8_8_0.07.pth" }, … ] }
//! ```

use std::path::{Component, Path};

use serde::Deserialize;

use crate::data::{read_bytes, sha256, sha256_of_file};
use crate::error::{Error, Result, check_words};
use crate::events::{Events, Progress};
use crate::flow::Architecture;
use crate::flow::import::{Checkpoint, Inferred, read_checkpoint};
use crate::flow::weights::Weights;
use crate::oracle::info::{FLOWS, OracleInfo, check_names, preprocessing};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Flows {
    name: String,
    classes: Vec<ClassFlow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClassFlow {
    name: String,
    file: String,
}

/// Before the name of every array: the number of its flow.
fn prefix(flow: usize) -> String {
    format!("flow.{flow}.")
}

/// Reads such a folder; the arrays of flow k are called `flow.k.…`.
///
/// # Errors
/// Names the file that is missing, broken, conditional, or of another architecture than the first.
pub fn read(folder: &Path, events: &mut dyn Events<Progress>) -> Result<(OracleInfo, Weights)> {
    let path = folder.join(FLOWS);
    let text = read_bytes(&path).map_err(|e| Error::io(&path, e))?;
    let flows: Flows = serde_json::from_slice(&text).map_err(|e| Error::file(&path, e.to_string()))?;
    let mut all = Weights::default();
    let mut first: Option<Inferred> = None;
    let mut hashes = String::new();
    for (k, class) in flows.classes.iter().enumerate() {
        check_words(&class.file).map_err(|cause| Error::file(&path, cause))?;
        // A class lies in the folder or below it: a shared folder discloses no other file.
        if Path::new(&class.file).components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(Error::file(&path, format!("class {k} lies in {:?}, outside this folder", class.file)));
        }
        let file = folder.join(&class.file);
        if !file.is_file() {
            return Err(Error::file(&path, format!("class {k} lies in {}, and no such file is there", file.display())));
        }
        let Checkpoint { inferred, weights } = read_checkpoint(&file, events)?;
        let fits = matches!(&inferred.architecture, Architecture::TarFlow(config) if config.classes == 0);
        if !fits {
            return Err(Error::file(&file, "is no unconditional TarFlow, as one flow per class needs"));
        }
        let known = first.get_or_insert_with(|| inferred.clone());
        if (known.architecture, known.pixels) != (inferred.architecture, inferred.pixels) {
            return Err(Error::file(
                &file,
                format!("has another architecture or noise than {}", flows.classes[0].file),
            ));
        }
        hashes += &sha256_of_file(&file, events)?;
        all.0.extend(weights.0.into_iter().map(|(name, array)| (prefix(k) + &name, array)));
    }
    let Some(Inferred { architecture, pixels, mut sentences, .. }) = first.filter(|_| flows.classes.len() > 1) else {
        return Err(Error::file(&path, "lists fewer than two classes"));
    };
    sentences.insert(0, format!("{} classes, one flow each: from {FLOWS}", flows.classes.len()));
    let info = OracleInfo {
        format: 1,
        name: flows.name,
        family: architecture.family().into(),
        architecture,
        class_names: flows.classes.iter().map(|class| class.name.clone()).collect(),
        preprocessing: preprocessing(&architecture, pixels),
        pixels,
        weights_sha256: sha256(hashes.as_bytes()),
        storage: "as published".into(),
        inferred: Some(sentences),
        flows: flows.classes.into_iter().map(|class| class.file).collect(),
        training: None,
    };
    check_names(&info).map_err(|cause| Error::file(&path, cause))?;
    Ok((info, all))
}

/// The arrays of each of `flows` flows under their own names.
pub fn split(weights: Weights, flows: usize) -> Vec<Weights> {
    let mut each = vec![Weights::default(); flows];
    for (name, array) in weights.0 {
        let place = name.strip_prefix("flow.").and_then(|rest| rest.split_once('.'));
        if let Some((flow, inner)) = place.and_then(|(k, inner)| Some((each.get_mut(k.parse::<usize>().ok()?)?, inner)))
        {
            flow.0.insert(inner.to_owned(), array);
        }
    }
    each
}

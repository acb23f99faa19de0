//! The architecture of a public TarFlow, from its file name and its shapes.

use std::path::Path;

use super::{Inferred, Shapes, count, shape_of};
use crate::data::ImageShape;
use crate::flow::Architecture;
use crate::flow::preprocess::Preprocessing;
use crate::flow::tarflow::{MEANS, TarFlowConfig};

/// How the causal masks end that the paper's code stores beside the parameters.
pub const MASK: &str = ".attn_mask";
/// How refusals begin.
pub const NOT_A_TARFLOW: &str = "not a TarFlow of the public layout";
/// σ assumed where the file name does not tell: that of the paper's ImageNet-64 model.
const USUAL_NOISE: f64 = 0.05;

/// What a name of the public pattern says.
#[derive(Debug, Clone, PartialEq)]
struct Name {
    patch: usize,
    channels: usize,
    blocks: usize,
    layers: usize,
    noise: Preprocessing,
}

impl Name {
    /// `<dataset>_model_<patch>_<channels>_<blocks>_<layers>_<noise>` with whatever ending.
    fn parse(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let stem =
            [".pth", ".pt", ".safetensors", ".ckpt"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        let (_, numbers) = stem.rsplit_once("_model_")?;
        let parts: Vec<&str> = numbers.split('_').collect();
        let [patch, channels, blocks, layers, noise] = parts[..] else { return None };
        let noise = match noise {
            "uniform" => Preprocessing::UniformSymmetric,
            std => {
                let noise = Preprocessing::Gaussian { std: std.parse().ok()? };
                noise.validate().is_ok().then_some(noise)?
            }
        };
        let number = |text: &str| text.parse().ok();
        Some(Self {
            patch: number(patch)?,
            channels: number(channels)?,
            blocks: number(blocks)?,
            layers: number(layers)?,
            noise,
        })
    }
}

/// The flow that names, shapes and file name mean.
pub fn infer(path: &Path, shapes: &Shapes) -> Result<Inferred, String> {
    let layout = |cause: String| format!("{NOT_A_TARFLOW}: {cause}");
    let name = Name::parse(path);
    let config = config(shapes, name.as_ref()).map_err(layout)?;
    if let Some(name) = &name {
        let told = (name.patch, name.channels, name.blocks, name.layers);
        let found = (config.patch, config.channels, config.blocks, config.layers);
        if told != found {
            return Err(format!(
                "its name says patch, channels, blocks, layers = {told:?}, its arrays say {found:?}: was it renamed?"
            ));
        }
    }
    let (pixels, noise) = match &name {
        Some(name) => (name.noise, format!("{}: from the file name", name.noise.describe())),
        None => {
            let assumed = Preprocessing::Gaussian { std: USUAL_NOISE };
            (assumed, format!("{}: assumed, the file name does not tell the noise", assumed.describe()))
        }
    };
    let TarFlowConfig { shape, classes, patch, channels, blocks, layers, volume_preserving, shared_map } = config;
    let labels = match classes {
        0 => "no class embedding: a world of one class".to_owned(),
        n if shared_map => format!("{n} classes with one map: from the shape of 'means'"),
        n => format!("{n} classes: from the shape of 'class_embed'"),
    };
    let kind = if volume_preserving { "shift only (VP)" } else { "scale and shift (NVP)" };
    Ok(Inferred {
        architecture: Architecture::TarFlow(config),
        pixels,
        classes: classes.max(1),
        sentences: vec![
            format!("{shape} images in patches of {patch}×{patch}: from the shape of 'var'"),
            labels,
            format!(
                "{blocks} blocks of {layers} layers, {channels} channels: counted in the names and from their shapes"
            ),
            format!("{kind}: from the shape of 'proj_out'"),
            noise,
        ],
    })
}

fn config(shapes: &Shapes, name: Option<&Name>) -> Result<TarFlowConfig, String> {
    let &[tokens, dims] = shape_of(shapes, "var")? else { return Err("'var' is not [patches, dimensions]".into()) };
    let &[_, channels] = shape_of(shapes, "blocks.0.pos_embed")? else {
        return Err("'pos_embed' is not [patches, channels]".into());
    };
    let classes = match shapes.get("blocks.0.class_embed").map(Vec::as_slice) {
        None => 0,
        Some(&[classes, 1, _]) => classes,
        Some(shape) => return Err(format!("'class_embed' is {shape:?}, not [classes, 1, channels]")),
    };
    let (classes, shared_map) = match (classes, shapes.get(MEANS).map(Vec::as_slice)) {
        (0, Some(&[classes, _, _])) => (classes, true),
        (_, None) => (classes, false),
        (0, Some(shape)) => return Err(format!("'{MEANS}' is {shape:?}, not [classes, patches, dimensions]")),
        (_, Some(_)) => return Err(format!("it has both class embeddings and '{MEANS}'")),
    };
    let &[outputs] = shape_of(shapes, "blocks.0.proj_out.bias")? else {
        return Err("'proj_out.bias' is no vector".into());
    };
    let volume_preserving = outputs == dims;
    let blocks = count(shapes, |b| format!("blocks.{b}."));
    let layers = count(shapes, |l| format!("blocks.0.attn_blocks.{l}."));
    let (image_channels, patch) = patch(dims, name.map(|name| name.patch))?;
    let side = (tokens as f64).sqrt().round() as usize;
    if side * side != tokens {
        return Err(format!("{tokens} patches do not form a square image"));
    }
    let side = side * patch;
    let shape = ImageShape { channels: image_channels, height: side, width: side };
    let config = TarFlowConfig { shape, classes, patch, channels, blocks, layers, volume_preserving, shared_map };
    config.validate().map_err(|e| e.to_string())?;
    Ok(config)
}

/// Image channels and side of a patch of `dims` values: RGB where both are possible, unless the
/// name tells the side.
fn patch(dims: usize, told: Option<usize>) -> Result<(usize, usize), String> {
    let side = |channels: usize| {
        let side = ((dims / channels) as f64).sqrt().round() as usize;
        (channels * side * side == dims && side > 0).then_some((channels, side))
    };
    if let Some(told) = told.filter(|&p| p > 0 && dims.is_multiple_of(p * p)) {
        return Ok((dims / (told * told), told));
    }
    side(3).or_else(|| side(1)).ok_or_else(|| format!("{dims} values are no square patch of 1 or 3 channels"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_names_are_read_and_others_are_not() {
        let name = |text: &str| Name::parse(Path::new(text));
        let afhq = name("dir/afhq_model_8_768_8_8_0.07.pth").unwrap();
        assert_eq!((afhq.patch, afhq.channels, afhq.blocks, afhq.layers), (8, 768, 8, 8));
        assert_eq!(afhq.noise, Preprocessing::Gaussian { std: 0.07 });
        assert_eq!(
            name("imagenet_model_2_768_8_8_uniform.safetensors").unwrap().noise,
            Preprocessing::UniformSymmetric
        );
        for other in [
            "config1.pth",
            "a_model_2_3.pth",
            "a_model_x_768_8_8_0.07.pth",
            "a_model_2_64_2_2_nan.pth",
            "a_model_2_64_2_2_-0.1.pth",
        ] {
            assert_eq!(name(other), None, "{other}");
        }
    }

    #[test]
    fn patches_are_rgb_unless_they_cannot_be_or_the_name_says_otherwise() {
        assert_eq!(patch(48, None), Ok((3, 4)));
        assert_eq!(patch(4, None), Ok((1, 2)));
        assert_eq!(patch(12, Some(2)), Ok((3, 2)));
        assert_eq!(patch(48, Some(2)), Ok((12, 2)));
        assert!(patch(7, None).is_err());
    }
}

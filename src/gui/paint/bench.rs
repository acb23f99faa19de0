//! Measures bringing pictures from a tensor into a texture: in place, and over the host.

use std::sync::Arc;

use burn::tensor::wgpu::WgpuSetup;
use eframe::egui::mutex::RwLock;
use eframe::egui_wgpu::{RenderState, Renderer, RendererOptions};

use super::gpu::{Gpu, Own};
use crate::data::ImageShape;
use crate::device::{DeviceChoice, ImageSource, OpenDevice, choose, lend_window, open_adapter, pictures, to_host};
use crate::error::{Error, Result};
use crate::events::silent;
use crate::flow::Precision;
use crate::oracle::bench::Timing;
use crate::oracle::folder;
use crate::oracle::world::{SampleSpec, Settings};
use crate::units::Seed;

/// Pictures of one measured frame.
const IMAGES: usize = 256;
/// Side of the texture, pixels, if the images are not larger.
const SHEET: usize = 1024;

/// What a window has, on a device of its own without a window.
///
/// # Errors
/// When there is no such adapter, or it gives no device.
fn headless(asked: DeviceChoice) -> Result<RenderState> {
    let WgpuSetup { instance, adapter, device, queue, .. } = open_adapter(asked)?;
    let target_format = wgpu::TextureFormat::Rgba8Unorm;
    let renderer = Arc::new(RwLock::new(Renderer::new(&device, target_format, RendererOptions::default())));
    Ok(RenderState { adapter, available_adapters: Vec::new(), instance, device, queue, target_format, renderer })
}

/// Times both ways for samples of a world on a graphics adapter.
///
/// # Errors
/// When `asked` is no adapter that works, the oracle cannot be read, or its images are on the host.
pub fn bench(oracle: &str, asked: DeviceChoice, runs: usize) -> Result<(OpenDevice, Vec<Timing>)> {
    let state = headless(asked)?;
    let window = lend_window(&state.instance, &state.adapter, (&state.device, &state.queue), false);
    let chosen = choose(asked)?;
    let opened = folder::open(oracle, &chosen.device, Precision::F32, chosen.batch)?;
    let world = opened.world;
    if world.flow().resident().is_some_and(|flow| flow.at_once() < IMAGES) {
        return Err(Error::Device(format!("{asked} takes fewer than {IMAGES} images of {oracle} at once")));
    }
    let spec = SampleSpec::new(IMAGES, Seed(0));
    let settings = Settings::default_for(world.class_names().len());
    let indices: Vec<usize> = (0..IMAGES).collect();
    let made = world.sample_resident(&spec, &settings, &indices, &mut silent())?;
    let levels =
        made.ok_or_else(|| Error::Device(format!("{asked} computes on the host: nothing to paint in place")))?.levels;
    let shape = world.shape();
    let side = SHEET.max(shape.width).max(shape.height);
    let gpu = Arc::new(Gpu::new(&state, window));
    let mut sheet = Own::new(&gpu, "bench", [side, side]);
    let mut paint = |sources: &[ImageSource]| -> Result<()> {
        let places: Vec<_> = sources.iter().enumerate().map(|(i, source)| (corner(shape, side, i), source)).collect();
        sheet.put(shape, &places);
        gpu.perform();
        state.device.poll(wgpu::PollType::wait_indefinitely()).map_err(|e| Error::Device(e.to_string()))?;
        Ok(())
    };
    let name = |how: &str| format!("paint {IMAGES} images of {} ({shape}) {how}", opened.info.name);
    let in_place = Timing::measure(name("in place"), 1, runs, || paint(&pictures(levels.clone())?))?;
    let over_host = Timing::measure(name("over the host"), 1, runs, || {
        let bytes: Vec<u8> = to_host(levels.clone())?.into_iter().map(|level| level as u8).collect();
        paint(&bytes.chunks(shape.dims()).map(|image| ImageSource::Host(image.to_vec())).collect::<Vec<_>>())
    })?;
    Ok((chosen, vec![in_place, over_host]))
}

/// Where picture `i` lies, the first again where the texture is full.
fn corner(shape: ImageShape, side: usize, i: usize) -> [usize; 2] {
    let (columns, rows) = (side / shape.width, side / shape.height);
    let cell = i % (columns * rows);
    [cell % columns * shape.width, cell / columns * shape.height]
}

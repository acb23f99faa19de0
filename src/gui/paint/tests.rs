//! On the first Vulkan adapter, software or not: what the shader paints from levels on the device
//! is, byte for byte, what is uploaded from the host.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use eframe::egui::mutex::RwLock;
use eframe::egui_wgpu::{RenderState, Renderer, RendererOptions};

use super::gpu::{Gpu, Own};
use super::{HeatMap, Ramp};
use crate::data::ImageShape;
use crate::device::{
    DeviceChoice, ImageSource, Lender, choose, descriptor, in_place, lend_window, paints, pictures, to_host,
    values_read,
};
use crate::flow::Precision;
use crate::gui::theme::pixel;
use crate::oracle::folder;
use crate::oracle::world::{SampleSpec, Settings};
use crate::units::{Seed, Tau};

/// What a window has, without one.
fn window() -> Option<RenderState> {
    let backends = wgpu::Backends::VULKAN;
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let adapter = burn::tensor::read_sync(instance.enumerate_adapters(backends)).into_iter().next()?;
    let (device, queue) = burn::tensor::read_sync(adapter.request_device(&descriptor(&adapter))).ok()?;
    let target_format = wgpu::TextureFormat::Rgba8Unorm;
    let renderer = Arc::new(RwLock::new(Renderer::new(&device, target_format, RendererOptions::default())));
    Some(RenderState { adapter, available_adapters: Vec::new(), instance, device, queue, target_format, renderer })
}

/// That window lent to burn; `None`, said aloud, where there is no adapter.
fn shared() -> Option<(RenderState, Lender, Device)> {
    let Some(state) = window() else {
        eprintln!("skipped: no Vulkan adapter (install mesa-vulkan-drivers)");
        return None;
    };
    let window = lend_window(&state.instance, &state.adapter, (&state.device, &state.queue), false);
    let chosen = choose(DeviceChoice::Wgpu(None)).unwrap();
    assert!(paints(&chosen.device), "{}", chosen.report.reason);
    assert!(chosen.report.reason.contains("shared with the window"));
    Some((state, window, chosen.device))
}

/// The pixels of a texture, RGBA; a read-back for the test alone.
fn pixels(state: &RenderState, sheet: &Own) -> Vec<u8> {
    let texture = sheet.texture();
    let (width, height) = (texture.width(), texture.height());
    let stride = (4 * width).next_multiple_of(wgpu::COPY_BYTES_PER_ROW_ALIGNMENT);
    let buffer = state.device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: u64::from(stride * height),
        usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
        mapped_at_creation: false,
    });
    let mut encoder = state.device.create_command_encoder(&Default::default());
    let layout = wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(stride), rows_per_image: None };
    encoder.copy_texture_to_buffer(
        texture.as_image_copy(),
        wgpu::TexelCopyBufferInfo { buffer: &buffer, layout },
        texture.size(),
    );
    state.queue.submit([encoder.finish()]);
    buffer.slice(..).map_async(wgpu::MapMode::Read, |mapped| mapped.unwrap());
    state.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    let bytes = buffer.slice(..).get_mapped_range().unwrap().to_vec();
    bytes.chunks(stride as usize).flat_map(|row| &row[..4 * width as usize]).copied().collect()
}

/// Sheets of 128 × 64 pixels, one painted from `sources` where they are and one uploaded from
/// `bytes`, at the same places.
fn sheets(
    (state, window): (&RenderState, Lender),
    shape: ImageShape,
    sources: &[ImageSource],
    bytes: &[Vec<u8>],
) -> [Vec<u8>; 2] {
    let gpu = Arc::new(Gpu::new(state, window));
    let columns = 128 / shape.width;
    // From the back, so that no picture's place is its number.
    let n = sources.len();
    let corner = |i: usize| [(n - 1 - i) % columns * shape.width, (n - 1 - i) / columns * shape.height];
    let hosts: Vec<ImageSource> = bytes.iter().cloned().map(ImageSource::Host).collect();
    [sources, &hosts].map(|sources| {
        let mut sheet = Own::new(&gpu, "sheet", [128, 64]);
        let pictures: Vec<_> = sources.iter().enumerate().map(|(i, source)| (corner(i), source)).collect();
        sheet.put(shape, &pictures);
        gpu.perform();
        pixels(state, &sheet)
    })
}

/// What `paint` makes without reading a value back. Other tests read values at the same time and
/// are counted too, so that one try of many has to be without any.
fn reading_nothing<T>(paint: impl Fn() -> T) -> T {
    let tried = (0..100).find_map(|_| {
        let before = values_read();
        let made = paint();
        (values_read() == before).then_some(made)
    });
    tried.expect("painting reads values back")
}

#[test]
fn what_is_painted_in_place_is_what_is_uploaded_byte_for_byte() {
    let Some((state, window, device)) = shared() else { return };
    // Colours: every level, three channels that differ.
    let shape = ImageShape { channels: 3, height: 8, width: 16 };
    let levels: Vec<f32> = (0..2 * shape.dims()).map(|i| ((i * 7 + i / 256) % 256) as f32).collect();
    let tensor = Tensor::<4>::from_data(TensorData::new(levels.clone(), [2, 3, 8, 16]), &device);
    let sources = pictures(tensor * 1.0).unwrap();
    let bytes: Vec<Vec<u8>> = levels.chunks(shape.dims()).map(|x| x.iter().map(|&l| l as u8).collect()).collect();
    let [painted, uploaded] = sheets((&state, window), shape, &sources, &bytes);
    assert!(painted.iter().any(|&byte| byte > 0));
    assert_eq!(painted, uploaded);
    // Samples of a world, in two batches that lie at different places of the device's memory.
    let world = folder::open("mnist", &device, Precision::F32, 16).unwrap().world;
    let (spec, settings) = (SampleSpec::new(8, Seed(2)), Settings::default_for(10));
    let (mut sources, mut bytes) = (Vec::new(), Vec::new());
    for indices in [[0, 1, 2, 3], [4, 5, 6, 7]] {
        let made = world.sample_resident(&spec, &settings, &indices, &mut crate::events::silent()).unwrap().unwrap();
        sources.extend(reading_nothing(|| pictures(made.levels.clone()).unwrap()));
        let read: Vec<u8> = to_host(made.levels).unwrap().into_iter().map(|level| level as u8).collect();
        bytes.extend(read.chunks(world.shape().dims()).map(<[u8]>::to_vec));
    }
    assert!(sources.iter().all(|source| matches!(source, ImageSource::Device(_))));
    let [painted, uploaded] = sheets((&state, window), world.shape(), &sources, &bytes);
    assert_eq!(painted, uploaded);
    heat_maps_are_painted_where_their_cells_are((&state, window), &device);
    a_call_of_the_windows_that_fails_is_no_fault_of_burns(&state, &device);
    pictures_of_another_window_are_not_painted(world.shape(), &sources);
}

/// Whatever the window's thread is called: here as the test, in the Python package not at all. Nothing is asked
/// of the device afterwards: it has refused something.
fn a_call_of_the_windows_that_fails_is_no_fault_of_burns(state: &RenderState, device: &Device) {
    let refused = |device: &wgpu::Device| {
        let usage = wgpu::BufferUsages::empty();
        drop(device.create_buffer(&wgpu::BufferDescriptor { label: None, size: 4, usage, mapped_at_creation: false }));
    };
    refused(&state.device);
    let read = to_host(Tensor::<1>::from_data([1.0, 2.0], device) * 2.0).unwrap();
    assert_eq!(read, [2.0, 4.0]);
    let lent = state.device.clone();
    let other = std::thread::spawn(move || refused(&lent)).join();
    assert!(other.is_err(), "a refusal on burn's threads has to end their task");
}

/// A window that is opened after another was lost may be told of pictures that lay there.
fn pictures_of_another_window_are_not_painted(shape: ImageShape, sources: &[ImageSource]) {
    let Some((state, window, _)) = shared() else { return };
    let blank = vec![vec![0; shape.dims()]; sources.len()];
    let [painted, uploaded] = sheets((&state, window), shape, sources, &blank);
    assert!(painted.iter().all(|&byte| byte == 0));
    assert!(uploaded.iter().any(|&byte| byte > 0), "even black is opaque");
    let gpu = Arc::new(Gpu::new(&state, window));
    let mut sheet = Own::new(&gpu, "heat", [2, 1]);
    let ramp = Ramp::new(|share| pixel((127.0 + 127.0 * share) as u8, 0, 0));
    sheet.heat(&HeatMap { size: [2, 1], values: &[-1.0, 1.0], in_place: sources.first(), extent: 1.0, ramp });
    gpu.perform();
    assert_eq!(pixels(&state, &sheet)[..8], [0, 0, 0, 255, 254, 0, 0, 255], "from the host");
}

/// Of both families; a TarFlow with one map for all classes leaves no cells on the device.
fn heat_maps_are_painted_where_their_cells_are((state, window): (&RenderState, Lender), device: &Device) {
    let gpu = Arc::new(Gpu::new(state, window));
    for oracle in ["mnist", "tests/worlds/animals"] {
        let world = folder::open(oracle, device, Precision::F32, 16).unwrap().world;
        let classes = world.class_names().len();
        let spec = SampleSpec::new(1, Seed(3));
        let sample = world.sample_indices(&spec, &Settings::default_for(classes), &[0]).unwrap().remove(0);
        let tau = Tau::new(0.9).unwrap();
        let (evidence, cells) = world.flow().resident().unwrap().evidence_resident(&sample.x, 0, 2, tau).unwrap();
        assert_eq!(evidence, world.evidence(&sample.x, 0, 2, tau).unwrap(), "{oracle}");
        let in_place = reading_nothing(|| in_place(cells.clone()).unwrap());
        assert!(matches!(in_place, Some(ImageSource::Device(_))));
        let there: Vec<f64> = to_host(cells).unwrap();
        let extent = evidence.extent();
        assert_eq!(there.len(), evidence.cells.len());
        let apart = there.iter().zip(&evidence.cells).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart <= 1e-4 * (1.0 + extent), "{oracle}: cells ±{extent} differ by {apart}");
        // The same values, and colours for which a share that is off by a step would show.
        let ramp = Ramp::new(|share| pixel((127.0 + 127.0 * share) as u8, (share.abs() * 255.0) as u8, 77));
        let size = [evidence.columns, evidence.rows];
        let painted = |in_place| {
            let mut sheet = Own::new(&gpu, "heat", size);
            sheet.heat(&HeatMap { size, values: &there, in_place, extent, ramp: ramp.clone() });
            gpu.perform();
            pixels(state, &sheet)
        };
        let (shaded, uploaded) = (painted(in_place.as_ref()), painted(None));
        assert!(shaded.iter().any(|&byte| byte > 0));
        assert_eq!(shaded, uploaded, "{oracle}");
    }
}

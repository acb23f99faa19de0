//! Textures on the window's own device.

use std::sync::Arc;

use eframe::egui::mutex::{Mutex, RwLock};
use eframe::egui::{ColorImage, PaintCallbackInfo, TextureId};
use eframe::egui_wgpu::{CallbackResources, CallbackTrait, RenderState, Renderer, ScreenDescriptor};
use wgpu::util::DeviceExt;

use super::heat::{HeatMap, Ramp};
use super::picture;
use crate::data::ImageShape;
use crate::device::{DevicePicture, ImageSource, Lender};

/// What egui asks of textures that are not its own.
const FORMAT: wgpu::TextureFormat = wgpu::TextureFormat::Rgba8Unorm;

/// The window's device and the shaders that paint what lies there.
pub struct Gpu {
    window: Lender,
    device: wgpu::Device,
    queue: wgpu::Queue,
    renderer: Arc<RwLock<Renderer>>,
    tiles: wgpu::RenderPipeline,
    heat: wgpu::RenderPipeline,
    /// Whether the surface is in no sRGB format, so that a clear colour is not converted.
    clears: bool,
    /// Textures that were dropped: the frame under way may still show them.
    dropped: Mutex<Vec<TextureId>>,
    /// What textures are still to be given.
    updates: Mutex<Vec<TextureUpdate>>,
}

/// A change of a texture before the frame that shows it. Layout touches neither queue nor buffers.
enum TextureUpdate {
    /// A picture at its upper left corner.
    Upload { texture: wgpu::Texture, corner: [usize; 2], shape: ImageShape, bytes: Vec<u8> },
    /// Colours of a whole texture.
    Colours { texture: wgpu::Texture, picture: ColorImage },
    /// Pictures of one batch, each at its upper left corner, on a sheet of so many pixels.
    Paint { view: wgpu::TextureView, sheet: [u32; 2], shape: ImageShape, pictures: Vec<([usize; 2], DevicePicture)> },
    /// A heat map: values, columns and rows, upper end of its colours, colours.
    Heat { view: wgpu::TextureView, values: DevicePicture, size: [usize; 2], end: f32, ramp: Ramp },
}

impl Gpu {
    /// On the device that paints this window.
    pub fn new(state: &RenderState, window: Lender) -> Self {
        let (device, queue) = (state.device.clone(), state.queue.clone());
        let tiles = pipeline(&device, wgpu::include_wgsl!("../../../shaders/tiles.wgsl"));
        let heat = pipeline(&device, wgpu::include_wgsl!("../../../shaders/heat.wgsl"));
        let (renderer, clears) = (state.renderer.clone(), !state.target_format.is_srgb());
        Self {
            window,
            device,
            queue,
            renderer,
            tiles,
            heat,
            clears,
            dropped: Mutex::default(),
            updates: Mutex::default(),
        }
    }

    /// Returns whether the window can be cleared with a colour of the theme.
    pub fn clears(&self) -> bool {
        self.clears
    }

    /// Returns whether something is to be done before the next frame is painted.
    pub fn is_wanted(&self) -> bool {
        !self.updates.lock().is_empty()
    }

    /// Performs the uploads in commands of their own, since a frame may be dropped; uploads first.
    pub fn perform(&self) {
        let updates = std::mem::take(&mut *self.updates.lock());
        let mut encoder = self.device.create_command_encoder(&Default::default());
        for update in &updates {
            match update {
                TextureUpdate::Upload { texture, corner, shape, bytes } => {
                    self.upload(texture, *corner, &picture(*shape, bytes));
                }
                TextureUpdate::Colours { texture, picture } => self.upload(texture, [0, 0], picture),
                TextureUpdate::Paint { view, sheet, shape, pictures } => {
                    self.paint(&mut encoder, view, *sheet, *shape, pictures);
                }
                TextureUpdate::Heat { view, values, size, end, ramp } => {
                    self.heat(&mut encoder, view, (values, *size), (*end, ramp));
                }
            }
        }
        self.queue.submit([encoder.finish()]);
    }

    fn upload(&self, texture: &wgpu::Texture, [x, y]: [usize; 2], picture: &ColorImage) {
        let origin = wgpu::Origin3d { x: x as u32, y: y as u32, z: 0 };
        let [width, height] = picture.size;
        self.queue.write_texture(
            wgpu::TexelCopyTextureInfo { origin, ..texture.as_image_copy() },
            picture.as_raw(),
            wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(4 * width as u32), rows_per_image: None },
            extent(width, height),
        );
    }

    /// Pictures of one batch, one draw call.
    fn paint(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        view: &wgpu::TextureView,
        sheet: [u32; 2],
        shape: ImageShape,
        pictures: &[([usize; 2], DevicePicture)],
    ) {
        let Some((_, first)) = pictures.first() else { return };
        // As `Tile` and `Sheet` of the shader lie in memory.
        let tile = |([x, y], levels): &([usize; 2], DevicePicture)| [*x as u32, *y as u32, levels.first() as u32, 0];
        let tiles: Vec<u32> = pictures.iter().flat_map(tile).collect();
        let [width, height, channels] = [shape.width, shape.height, shape.channels].map(|n| n as u32);
        let sheet = [width, height, sheet[0], sheet[1], channels, 0];
        self.draw(encoder, view, &self.tiles, (first, &tiles, &sheet), pictures.len() as u32);
    }

    /// A heat map, over a whole texture.
    fn heat(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        view: &wgpu::TextureView,
        (values, [columns, rows]): (&DevicePicture, [usize; 2]),
        (end, ramp): (f32, &Ramp),
    ) {
        let colours: Vec<u32> = ramp.0.iter().map(|colour| u32::from_le_bytes(colour.to_array())).collect();
        // As `Map` of the shader lies in memory.
        let map = [columns as u32, rows as u32, values.first() as u32, end.to_bits()];
        self.draw(encoder, view, &self.heat, (values, &colours, &map), 1);
    }

    /// Draws rectangles by a shader: device data, a list of rectangles and settings.
    fn draw(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        view: &wgpu::TextureView,
        pipeline: &wgpu::RenderPipeline,
        (painted, list, settings): (&DevicePicture, &[u32], &[u32]),
        rectangles: u32,
    ) {
        let buffer = |words: &[u32], usage| {
            let contents: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let init = wgpu::util::BufferInitDescriptor { label: None, contents: &contents, usage };
            self.device.create_buffer_init(&init)
        };
        let list = buffer(list, wgpu::BufferUsages::STORAGE);
        let settings = buffer(settings, wgpu::BufferUsages::UNIFORM);
        let bind = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: painted.binding() },
                wgpu::BindGroupEntry { binding: 1, resource: list.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 2, resource: settings.as_entire_binding() },
            ],
        });
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: None,
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view,
                depth_slice: None,
                resolve_target: None,
                ops: wgpu::Operations { load: wgpu::LoadOp::Load, store: wgpu::StoreOp::Store },
            })],
            ..Default::default()
        });
        pass.set_pipeline(pipeline);
        pass.set_bind_group(0, &bind, &[]);
        pass.draw(0..4, 0..rectangles);
    }

    /// Gives back the textures that were dropped before this frame.
    pub fn sweep(&self) {
        let dropped = std::mem::take(&mut *self.dropped.lock());
        if !dropped.is_empty() {
            let mut renderer = self.renderer.write();
            dropped.iter().for_each(|id| renderer.free_texture(id));
        }
    }
}

/// Rectangles that a shader places and paints.
fn pipeline(device: &wgpu::Device, shader: wgpu::ShaderModuleDescriptor<'_>) -> wgpu::RenderPipeline {
    let label = shader.label;
    let module = device.create_shader_module(shader);
    device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
        label,
        layout: None,
        vertex: wgpu::VertexState {
            module: &module,
            entry_point: Some("place"),
            compilation_options: Default::default(),
            buffers: &[],
        },
        primitive: wgpu::PrimitiveState { topology: wgpu::PrimitiveTopology::TriangleStrip, ..Default::default() },
        depth_stencil: None,
        multisample: Default::default(),
        fragment: Some(wgpu::FragmentState {
            module: &module,
            entry_point: Some("paint"),
            compilation_options: Default::default(),
            targets: &[Some(FORMAT.into())],
        }),
        multiview_mask: None,
        cache: None,
    })
}

/// A texture of ours that egui shows.
pub struct Own {
    gpu: Arc<Gpu>,
    texture: wgpu::Texture,
    view: wgpu::TextureView,
    id: TextureId,
}

impl Drop for Own {
    fn drop(&mut self) {
        self.gpu.dropped.lock().push(self.id);
    }
}

impl Own {
    /// An empty one of so many pixels.
    pub fn new(gpu: &Arc<Gpu>, name: &str, [width, height]: [usize; 2]) -> Self {
        let texture = gpu.device.create_texture(&wgpu::TextureDescriptor {
            label: Some(name),
            size: extent(width, height),
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: FORMAT,
            usage: wgpu::TextureUsages::TEXTURE_BINDING
                | wgpu::TextureUsages::RENDER_ATTACHMENT
                | wgpu::TextureUsages::COPY_DST
                | wgpu::TextureUsages::COPY_SRC,
            view_formats: &[],
        });
        let view = texture.create_view(&Default::default());
        let id = gpu.renderer.write().register_native_texture(&gpu.device, &view, wgpu::FilterMode::Nearest);
        Self { gpu: gpu.clone(), texture, view, id }
    }

    /// What egui calls it.
    pub fn id(&self) -> TextureId {
        self.id
    }

    /// The texture on the device, for tests that read it back.
    #[cfg(test)]
    pub fn texture(&self) -> &wgpu::Texture {
        &self.texture
    }

    /// Puts pictures at their upper left corners, pixels, before the next frame: bytes are
    /// uploaded, levels painted in place. Pictures of a lost window stay blank.
    pub fn put(&mut self, shape: ImageShape, pictures: &[([usize; 2], &ImageSource)]) {
        let mut resident: Vec<([usize; 2], &DevicePicture)> = Vec::new();
        let mut updates = self.gpu.updates.lock();
        for &(corner, source) in pictures {
            match source {
                ImageSource::Host(bytes) => {
                    let (texture, bytes) = (self.texture.clone(), bytes.clone());
                    updates.push(TextureUpdate::Upload { texture, corner, shape, bytes });
                }
                ImageSource::Device(levels) if levels.is_on(self.gpu.window) => resident.push((corner, levels)),
                ImageSource::Device(_) => {}
            }
        }
        while let Some((_, first)) = resident.first().copied() {
            let (batch, rest): (Vec<_>, Vec<_>) = resident.into_iter().partition(|(_, other)| other.same_batch(first));
            let pictures = batch.into_iter().map(|(corner, levels)| (corner, levels.clone())).collect();
            let (view, sheet) = (self.view.clone(), [self.texture.width(), self.texture.height()]);
            updates.push(TextureUpdate::Paint { view, sheet, shape, pictures });
            resident = rest;
        }
    }

    /// Becomes a heat map before the next frame is painted, a pixel for each value.
    pub fn heat(&mut self, map: &HeatMap<'_>) {
        let update = match map.in_place {
            Some(ImageSource::Device(values)) if values.is_on(self.gpu.window) => {
                let (view, values, ramp) = (self.view.clone(), values.clone(), map.ramp.clone());
                TextureUpdate::Heat { view, values, size: map.size, end: map.end(), ramp }
            }
            _ => TextureUpdate::Colours { texture: self.texture.clone(), picture: map.picture() },
        };
        self.gpu.updates.lock().push(update);
    }
}

/// Performs the updates before a frame is painted.
pub struct Before(pub Arc<Gpu>);

impl CallbackTrait for Before {
    fn prepare(
        &self,
        _: &wgpu::Device,
        _: &wgpu::Queue,
        _: &ScreenDescriptor,
        _: &mut wgpu::CommandEncoder,
        _: &mut CallbackResources,
    ) -> Vec<wgpu::CommandBuffer> {
        self.0.perform();
        Vec::new()
    }

    fn paint(&self, _: PaintCallbackInfo, _: &mut wgpu::RenderPass<'static>, _: &CallbackResources) {}
}

fn extent(width: usize, height: usize) -> wgpu::Extent3d {
    wgpu::Extent3d { width: width as u32, height: height as u32, depth_or_array_layers: 1 }
}

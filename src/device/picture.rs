//! Pictures for the eye: bytes on the host, or levels that stay on the window's own graphics device
//! until they are painted.

use burn::tensor::{Device, Tensor};

use super::read::to_host;
use super::registry::is_gpu;
use crate::error::Result;

/// Where the 8-bit picture of an image is.
#[derive(Debug, Clone, PartialEq)]
pub enum ImageSource {
    /// CHW bytes on the host.
    Host(Vec<u8>),
    /// Levels, or the values of a heat map, on the window's device, where they are painted.
    #[cfg(feature = "wgpu")]
    Device(DevicePicture),
}

impl ImageSource {
    /// The bytes, where they are on the host.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Host(bytes) => Some(bytes),
            #[cfg(feature = "wgpu")]
            Self::Device(_) => None,
        }
    }
}

impl From<Vec<u8>> for ImageSource {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Host(bytes)
    }
}

/// Whether what lies on `device` can be painted by the window where it is.
pub fn paints(device: &Device) -> bool {
    #[cfg(feature = "wgpu")]
    return super::window::painter(device).is_some();
    #[cfg(not(feature = "wgpu"))]
    {
        let _ = device;
        false
    }
}

/// Whether a processor both computes there and paints the window: a frame waits until the kernels
/// before it are done.
pub fn paints_in_software(device: &Device) -> bool {
    paints(device) && !is_gpu(device)
}

/// Pictures of `levels` [N, C, H, W] (0 … 255, whole numbers in f32): where they are, if the window
/// can paint them there, otherwise read back.
///
/// # Errors
/// When the device fails.
pub fn pictures(levels: Tensor<4>) -> Result<Vec<ImageSource>> {
    #[cfg(feature = "wgpu")]
    if let Some(lender) = super::window::painter(&levels.device()) {
        return Ok(on_device::hold(levels, lender)?.into_iter().map(ImageSource::Device).collect());
    }
    let [n, c, h, w] = levels.dims();
    let bytes: Vec<u8> = to_host(levels)?.into_iter().map(|level| level as u8).collect();
    Ok(bytes.chunks(c * h * w).take(n).map(|image| ImageSource::Host(image.to_vec())).collect())
}

/// The values [rows, columns] of a heat map, if the window can paint them where they are.
///
/// # Errors
/// When the device fails.
pub fn in_place(values: Tensor<2>) -> Result<Option<ImageSource>> {
    #[cfg(feature = "wgpu")]
    if let Some(lender) = super::window::painter(&values.device()) {
        return Ok(on_device::hold(values.unsqueeze(), lender)?.into_iter().next().map(ImageSource::Device));
    }
    let _ = values;
    Ok(None)
}

#[cfg(feature = "wgpu")]
pub use on_device::DevicePicture;

#[cfg(feature = "wgpu")]
mod on_device {
    use std::any::Any;
    use std::fmt;
    use std::num::NonZeroU64;
    use std::sync::Arc;

    use burn::tensor::Tensor;
    use burn_cubecl::Cube;
    use burn_cubecl::cubecl::wgpu::{AutoCompiler, WgpuServer};
    use burn_cubecl::kernel::into_contiguous;

    use super::super::window::Lender;
    use crate::error::{Error, Result};

    /// The levels of a batch.
    struct Batch {
        lender: Lender,
        buffer: wgpu::Buffer,
        offset: u64,
        size: Option<NonZeroU64>,
        dims: usize,
        /// While it is held, burn neither moves this memory nor gives it to anything else.
        _hold: Box<dyn Any + Send + Sync>,
    }

    /// One picture of a batch on the window's device: f32 levels 0 … 255, CHW, or a heat map.
    #[derive(Clone)]
    pub struct DevicePicture {
        batch: Arc<Batch>,
        row: usize,
    }

    impl DevicePicture {
        /// The buffer of the whole batch, from its offset on.
        pub fn binding(&self) -> wgpu::BindingResource<'_> {
            let Batch { buffer, offset, size, .. } = &*self.batch;
            wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset: *offset, size: *size })
        }

        /// Number of the picture's first level within that binding.
        pub fn first(&self) -> usize {
            self.row * self.batch.dims
        }

        /// Whether that window can paint it. Another one has another device, which may know this
        /// buffer by no name, or by that of something else.
        pub fn is_on(&self, window: Lender) -> bool {
            self.batch.lender == window
        }

        /// Whether two pictures are bound together.
        pub fn same_batch(&self, other: &Self) -> bool {
            Arc::ptr_eq(&self.batch, &other.batch)
        }
    }

    impl fmt::Debug for DevicePicture {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "DevicePicture({} of {:p})", self.row, Arc::as_ptr(&self.batch))
        }
    }

    impl PartialEq for DevicePicture {
        fn eq(&self, other: &Self) -> bool {
            self.same_batch(other) && self.row == other.row
        }
    }

    /// The pictures of `levels` [N, C, H, W] for a window, all work on them submitted: later
    /// submissions see them finished.
    pub fn hold(levels: Tensor<4>, lender: Lender) -> Result<Vec<DevicePicture>> {
        let [n, c, h, w] = levels.dims();
        let failed = |what: String| Error::Device(format!("pictures could not stay on the window's device: {what}"));
        let tensor = levels.try_into_primitive::<Cube>().map_err(|e| failed(format!("{e:?}")))?;
        let tensor = into_contiguous(tensor);
        let client = tensor.client.clone();
        let held = client.get_resource::<WgpuServer<AutoCompiler>>(tensor.handle).map_err(|e| failed(e.to_string()))?;
        client.flush().map_err(|e| failed(e.to_string()))?;
        let resource = held.resource();
        let (buffer, offset, size) = (resource.buffer.clone(), resource.offset, resource.size.next_multiple_of(4));
        let (size, dims, _hold) = (NonZeroU64::new(size), c * h * w, Box::new(held));
        let batch = Arc::new(Batch { lender, buffer, offset, size, dims, _hold });
        Ok((0..n).map(|row| DevicePicture { batch: batch.clone(), row }).collect())
    }
}

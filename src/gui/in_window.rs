//! The app in a real window: start, screenshot, frame times, and the loss of its graphics device.

mod measurement;

use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use eframe::egui::{self, ColorImage, Ui, ViewportCommand};
#[cfg(feature = "wgpu")]
use eframe::egui_wgpu::SurfaceConfig;

use super::app::App;
#[cfg(feature = "wgpu")]
use super::background::BackgroundTask;
use super::engine::Engine;
use super::frame_times::FrameReport;
use super::kept_path;
use super::launch::{APP_ID, Options};
#[cfg(feature = "wgpu")]
use super::paint::Canvas;
use super::prefs::{Prefs, SavedPrefs, settings_file};
use super::session::log::Level;
use super::shared_lists::SharedLists;
use super::window_restart::Known;
use crate::device::DeviceChoice;
#[cfg(feature = "wgpu")]
use crate::device::queue_yield;
use crate::error::{Error, Result};
use crate::oracle::library;
use crate::worker::Worker;

use measurement::Measurement;

/// What the window leaves behind.
#[derive(Default)]
pub struct Outcome {
    /// The picture that was asked for, saved or not.
    pub screenshot: Option<Result<()>>,
    /// Times of its frames.
    pub frames: Option<FrameReport>,
    pub lost: Option<Lost>,
}

/// A window's graphics device was lost.
pub struct Lost {
    pub why: String,
    /// What outlives the window, if it could be taken out of it.
    pub left: Option<Left>,
}

/// The engine and the window's state.
pub struct Left {
    engine: Rc<dyn Engine>,
    notifier: Arc<Notifier>,
    known: Known,
}

/// Wakes the window there is.
#[derive(Default)]
struct Notifier(Mutex<Option<egui::Context>>);

impl Notifier {
    fn attach(&self, ctx: &egui::Context) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(ctx.clone());
    }

    fn notify(&self) {
        if let Some(ctx) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            ctx.request_repaint();
        }
    }
}

/// Lends the window's device to the engine, and has pictures painted where they are made.
#[cfg(feature = "wgpu")]
fn share(cc: &eframe::CreationContext<'_>, apart: bool) {
    if let Some(state) = &cc.wgpu_render_state {
        let own = (&state.device, &state.queue);
        let window = crate::device::lend_window(&state.instance, &state.adapter, own, apart);
        Canvas::install(&cc.egui_ctx, state, window);
    }
}

/// Takes the window's device away after a while. As after a driver reset, the window is not told.
#[cfg(feature = "wgpu")]
fn drill(ctx: &egui::Context, after: Duration) {
    drop(BackgroundTask::start(ctx, "drill", move || {
        std::thread::park_timeout(after);
        crate::device::lose_window();
        std::thread::park_timeout(Duration::from_secs(2));
    }));
}

/// What was set the last time, and what the command line says; and what is to be said of it.
fn wanted(storage: Option<&dyn eframe::Storage>, options: &Options) -> (Prefs, Vec<String>) {
    let SavedPrefs { mut prefs, lost } = SavedPrefs::in_storage(storage);
    let mut notices = Vec::from_iter(settings_file::kept(&lost, eframe::storage_dir(APP_ID).as_deref()));
    let saved = &prefs.oracle;
    if !options.oracle.is_empty() {
        prefs.oracle = kept_path::oracle(&options.oracle);
    } else if let Some(where_now) = library::former(saved) {
        notices.push(format!("The world '{saved}' of the last time: {where_now}."));
        prefs.oracle = library::DEFAULT.into();
    } else if saved.is_empty() {
        prefs.oracle = library::DEFAULT.into();
    }
    if options.device != DeviceChoice::Auto {
        prefs.device = options.device;
    }
    if let Some(look) = options.theme {
        prefs.theme = look;
    }
    (prefs, notices)
}

/// Where the screenshot is.
enum Shot {
    No,
    /// The gallery is filling; how many full frames were painted since it is full.
    Waiting(u32),
    Asked(Arc<Mutex<Option<Arc<ColorImage>>>>),
}

/// The app, and what only a real window needs.
pub struct Running {
    app: App,
    lists: SharedLists,
    options: Options,
    outcome: Arc<Mutex<Outcome>>,
    started: Instant,
    shot: Shot,
    measurement: Measurement,
    notifier: Arc<Notifier>,
    /// Pixels of the last frame.
    #[cfg_attr(not(feature = "wgpu"), expect(dead_code, reason = "only a shared device has queue_yield"))]
    size: Option<egui::Vec2>,
    /// How the window's surface was set up.
    #[cfg(feature = "wgpu")]
    surface: Option<SurfaceConfig>,
}

impl Running {
    /// Builds the app in a new window that tells `notice`, or with the state of the last one if its device was lost.
    pub fn new(
        cc: &eframe::CreationContext<'_>,
        (options, notice, lost): (Options, Option<String>, Option<Lost>),
        outcome: Arc<Mutex<Outcome>>,
        started: Instant,
    ) -> Self {
        let left = lost.as_ref().and_then(|lost| lost.left.as_ref());
        let (mut saved, notices) = wanted(cc.storage, &options);
        let lists = SharedLists::read(eframe::storage_dir(APP_ID), &mut saved);
        let prefs = left.map_or(saved, |left| left.known.prefs.clone());
        #[cfg(feature = "wgpu")]
        share(cc, prefs.device_apart);
        let (engine, notifier) = match left {
            Some(left) => (left.engine.clone(), left.notifier.clone()),
            None => start(&prefs),
        };
        notifier.attach(&cc.egui_ctx);
        #[cfg(feature = "wgpu")]
        if let Some(secs) = options.lose_device_after_secs {
            drill(&cc.egui_ctx, Duration::try_from_secs_f64(secs).unwrap_or_default());
        }
        let mut app = App::new(&cc.egui_ctx, prefs, engine);
        if left.is_none() && options.oracle.is_empty() {
            app.look_for_oracle(&cc.egui_ctx);
        }
        app.began(started);
        app.restore(&cc.egui_ctx, cc.storage);
        match lost {
            Some(Lost { why, left }) => app.succeed(left.map(|left| left.known), &why),
            None => {
                app.open(options.open.clone());
                notice.into_iter().chain(notices).for_each(|notice| app.session.notify(Level::Warning, notice));
                // Pictures and measurements are of the window itself.
                let looked_at = options.screenshot.is_none() && options.frame_log.is_none();
                if looked_at && options.oracle.is_empty() && options.open.is_empty() {
                    app.show_start(!options.no_tour);
                } else if looked_at && !options.no_tour {
                    app.offer_tour();
                }
            }
        }
        let shot = if options.screenshot.is_some() { Shot::Waiting(0) } else { Shot::No };
        let measurement = if options.measure_frames { Measurement::Waiting } else { Measurement::No };
        if options.measure_frames {
            // A saved layout may have another panel in front, and the gallery would never settle.
            app.show_panel(super::panels::gallery::ID);
        }
        Self {
            app,
            lists,
            options,
            outcome,
            started,
            shot,
            measurement,
            notifier,
            size: None,
            #[cfg(feature = "wgpu")]
            surface: None,
        }
    }

    /// Returns whether this window is closing because its graphics device is lost.
    fn is_left(&self) -> bool {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).lost.is_some()
    }

    /// Closes a window that cannot be painted any more; what it knew goes on in another.
    #[cfg(feature = "wgpu")]
    fn leave_if_lost(&mut self, ctx: &egui::Context) {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        if outcome.lost.is_none()
            && let Some(why) = crate::device::window_lost()
        {
            let (engine, notifier) = (self.app.engine.clone(), self.notifier.clone());
            outcome.lost = Some(Lost { why, left: Some(Left { engine, notifier, known: self.app.retire() }) });
            ctx.send_viewport_cmd(ViewportCommand::Close);
        }
    }

    /// Pauses the engine on a shared device while the window is resized, and repaints at once.
    #[cfg(feature = "wgpu")]
    fn take_turns(&mut self, ctx: &egui::Context, frame: &mut eframe::Frame) {
        // A frame may be laid out twice.
        if ctx.current_pass_index() > 0 {
            return;
        }
        let size = ctx.content_rect().size() * ctx.pixels_per_point();
        if self.size.replace(size).is_some_and(|before| before != size) {
            queue_yield::take();
        }
        if !queue_yield::frame() {
            return;
        }
        ctx.request_repaint();
        // A surface is resized only when its configuration changes: the latency changes for one
        // frame.
        let Some(now) = frame.wgpu_surface_config() else { return };
        let own = *self.surface.get_or_insert(now);
        let latency = if own.desired_maximum_frame_latency == Some(2) { 1 } else { 2 };
        let other = SurfaceConfig { desired_maximum_frame_latency: Some(latency), ..own };
        frame.set_wgpu_surface_config(if queue_yield::take_refusal() && now == own { other } else { own });
    }

    fn photograph(&mut self, ctx: &egui::Context) {
        match &mut self.shot {
            Shot::No => {}
            Shot::Waiting(frames) => {
                // The picture of a drill is of the window after it.
                if self.app.settled() && self.options.lose_device_after_secs.is_none() {
                    *frames += 1;
                    ctx.request_repaint();
                }
                // Textures of what is in view are uploaded over a few frames.
                if *frames > 12 {
                    let image: Arc<Mutex<Option<Arc<ColorImage>>>> = Arc::default();
                    let (slot, waker) = (image.clone(), ctx.clone());
                    ctx.request_screenshot(move |picture| {
                        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(picture);
                        waker.request_repaint();
                    });
                    self.shot = Shot::Asked(image);
                }
            }
            Shot::Asked(image) => {
                let Some(image) = image.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
                if let Some(path) = &self.options.screenshot {
                    let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
                    outcome.screenshot = Some(save_png(path, &image));
                }
                self.shot = Shot::No;
                ctx.send_viewport_cmd(ViewportCommand::Close);
            }
        }
    }
}

/// The engine, and its notifier.
fn start(prefs: &Prefs) -> (Rc<dyn Engine>, Arc<Notifier>) {
    let notifier: Arc<Notifier> = Arc::default();
    let notified = notifier.clone();
    let worker = Worker::start(prefs.device, prefs.oracle.clone(), Arc::new(move || notified.notify()));
    (Rc::new(worker), notifier)
}

fn save_png(path: &Path, image: &ColorImage) -> Result<()> {
    let [width, height] = image.size.map(|side| side as u32);
    let saved = image::save_buffer_with_format(
        path,
        image.as_raw(),
        width,
        height,
        image::ExtendedColorType::Rgba8,
        image::ImageFormat::Png,
    );
    saved.map_err(|error| match error {
        image::ImageError::IoError(error) => Error::io(path, error),
        error => Error::file(path, error.to_string()),
    })
}

impl eframe::App for Running {
    fn logic(&mut self, ctx: &egui::Context, frame: &mut eframe::Frame) {
        #[cfg(feature = "wgpu")]
        self.leave_if_lost(ctx);
        // What the engine sends from now on is for the next window.
        if !self.is_left() {
            self.app.logic(ctx, frame);
        }
    }

    fn ui(&mut self, ui: &mut Ui, frame: &mut eframe::Frame) {
        // A frame without shapes needs nothing of a device that is gone.
        if self.is_left() {
            return;
        }
        let ctx = ui.ctx().clone();
        #[cfg(feature = "wgpu")]
        self.take_turns(&ctx, frame);
        self.app.ui(ui, frame);
        self.photograph(&ctx);
        self.measure(&ctx);
        if let Some(secs) = self.options.quit_after_secs {
            match Duration::try_from_secs_f64(secs).unwrap_or_default().checked_sub(self.started.elapsed()) {
                Some(left) if !left.is_zero() => ctx.request_repaint_after(left),
                _ => ctx.send_viewport_cmd(ViewportCommand::Close),
            }
        }
    }

    fn clear_color(&self, visuals: &egui::Visuals) -> [f32; 4] {
        self.app.clear_color(visuals)
    }

    fn save(&mut self, storage: &mut dyn eframe::Storage) {
        self.app.save(storage);
        self.app.share(&mut self.lists);
    }

    fn on_exit(&mut self) {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.frames = Some(self.app.frame_report());
    }
}

//! An engine that records what it is asked and answers when the test says so.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use bayescope::data::ImageShape;
use bayescope::device::{Candidate, DeviceChoice, DeviceReport};
use bayescope::events::Progress;
use bayescope::flow::preprocess::Preprocessing;
use bayescope::flow::tarflow::TarFlowConfig;
use bayescope::flow::{Architecture, Evidence};
use bayescope::gui::Engine;
use bayescope::oracle::folder::OracleInfo;
use bayescope::oracle::library;
use bayescope::oracle::posterior::Prior;
use bayescope::oracle::running::Running;
use bayescope::oracle::train::SO_FAR;
use bayescope::task::ExternalImage;
use bayescope::units::{Smoothing, Tau};
use bayescope::worker::bayes::protocol::Question;
use bayescope::worker::cell_images::CellImagesRequest;
use bayescope::worker::fetch::FetchRequest;
use bayescope::worker::judged_images::JudgedImagesRequest;
use bayescope::worker::protocol::{
    Draft, Event, EvidenceMap, EvidenceRequest, GalleryRequest, GalleryUpdate, InspectRequest, Inspection, Job, JobId,
    KeyPictures, KeyRequest, RunningPosterior, SketchAnswer, SketchRequest, Subject, Tile,
};
use bayescope::worker::runs::WatchRequest;

mod asked;

pub use super::images::{external, tile};

use super::images::bytes;
use super::training::trained;

pub const SHAPE: ImageShape = ImageShape { channels: 1, height: 32, width: 32 };

#[derive(Default)]
struct State {
    jobs: Vec<(JobId, Job)>,
    meant: Vec<Option<String>>,
    shown: usize,
    pending: Option<GalleryRequest>,
    inspect: Option<InspectRequest>,
    questions: Vec<Question>,
    pauses: Vec<(JobId, bool)>,
    cancelled: Vec<JobId>,
    checkpoints: Vec<PathBuf>,
    cell_images: Vec<(JobId, CellImagesRequest)>,
    fetches: Vec<(JobId, FetchRequest)>,
    judged: Vec<(JobId, JudgedImagesRequest)>,
    events: VecDeque<Event>,
    gallery: Option<GalleryUpdate>,
    inspection: Option<Inspection>,
    explain: Option<EvidenceRequest>,
    evidence: Option<EvidenceMap>,
    running: Option<RunningPosterior>,
    sketch: Option<SketchRequest>,
    sketches: usize,
    sketched: Option<SketchAnswer>,
    key_requests: Vec<KeyRequest>,
    keys: Option<KeyPictures>,
    watched: WatchRequest,
    glimpsed: Vec<&'static str>,
}

#[derive(Clone, Default)]
pub struct Fake(Arc<Mutex<State>>);

impl Fake {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub fn send(&self, event: Event) {
        self.state().events.push_back(event);
    }

    /// Tiles for the gallery.
    pub fn send_gallery(&self, update: GalleryUpdate) {
        self.state().gallery = Some(update);
    }

    /// What the real worker says first.
    pub fn open_oracle(&self) {
        let used = Candidate {
            choice: DeviceChoice::Cpu,
            name: "CPU, 2 cores".into(),
            driver: "burn flex".into(),
            software: false,
            place: None,
        };
        self.send(Event::Device(DeviceReport { asked: DeviceChoice::Auto, used, reason: "no GPU was found".into() }));
        let mut info = library::find("mnist").unwrap().info().unwrap();
        info.training = Some(trained());
        self.opened(info);
    }

    /// The oracle that was asked for is this one.
    fn opened(&self, info: OracleInfo) {
        let adopted = self.checkpoints().pop().map(|run| run.join(SO_FAR).display().to_string());
        let asked = self.jobs().into_iter().rev().find_map(|(_, job)| match job {
            Job::OpenOracle(name) => Some(name),
            _ => None,
        });
        let name = adopted.or(asked).unwrap_or_else(|| "mnist".into());
        self.send(Event::Oracle { name, info: Arc::new(info) });
    }

    /// An oracle of so many classes.
    pub fn open_classes(&self, names: Vec<String>) {
        let mut info = library::find("mnist").unwrap().info().unwrap();
        let Architecture::Glow(glow) = &mut info.architecture else { panic!("the default oracle is a Glow") };
        glow.classes = names.len();
        info.class_names = names;
        info.weights_sha256 = "other".into();
        self.opened(info);
    }

    /// Answers the waiting gallery and inspection in full.
    pub fn answer(&self) {
        self.answer_inspection();
        let mut state = self.state();
        if let Some(request) = state.pending.take() {
            let tau = request.settings.tau.get();
            let tiles: Vec<Tile> = (0..request.spec.n).map(|index| tile(index, tau)).collect();
            let progress = Progress { done: tiles.len(), total: tiles.len() };
            let (generation, drafts, failed) = (request.generation, Vec::new(), Vec::new());
            state.gallery = Some(GalleryUpdate { generation, shape: SHAPE, tiles, drafts, failed, progress });
        }
        if let Some(request) = state.explain.take() {
            let cells = (0..16).map(|cell| if cell == 5 { 3.25 } else { -0.125 }).collect();
            let evidence = Evidence { rows: 4, columns: 4, cells, total: 1.375 };
            let pixels = tile(0, 1.0).pixels;
            state.evidence = Some(EvidenceMap { request, shape: SHAPE, pixels, evidence, cells: None });
        }
    }

    /// Answers the waiting inspection.
    pub fn answer_inspection(&self) {
        let mut state = self.state();
        if let Some(request) = state.inspect.take() {
            let index = match request.subject {
                Subject::Sample { index, .. } | Subject::External(ExternalImage { index, .. }) => index,
            };
            let morph = request.taus.iter().map(|tau| (*tau, tile(index, tau.get()))).collect();
            state.inspection = Some(Inspection {
                generation: request.generation,
                subject: request.subject,
                shape: SHAPE,
                tile: tile(index, request.settings.tau.get()),
                settings: request.settings.clone(),
                rounding: Some(if request.settings.tau.get() > 2.0 { 0.25 } else { 0.0 }),
                morph,
                missing: 0,
            });
        }
    }

    /// Part of the waiting gallery: so many finished tiles, and one after them with a few blocks done.
    pub fn draft(&self, finished: usize) {
        let mut state = self.state();
        let request = state.pending.clone().expect("a gallery was asked for");
        let tau = request.settings.tau.get();
        let tiles = (0..finished).map(|index| tile(index, tau)).collect();
        let blocks = Progress { done: 2, total: 4 };
        let drafts = vec![Draft { index: finished, pixels: tile(finished, 0.1).pixels, blocks }];
        let progress = Progress { done: finished, total: request.spec.n };
        let (generation, failed) = (request.generation, Vec::new());
        state.gallery = Some(GalleryUpdate { generation, shape: SHAPE, tiles, drafts, failed, progress });
    }

    /// A TarFlow of so many classes with the pictures' shape, as its file describes it.
    pub fn open_tarflow(&self, classes: usize) {
        let mut info = library::find("mnist").unwrap().info().unwrap();
        info.architecture = Architecture::TarFlow(TarFlowConfig {
            shape: SHAPE,
            classes,
            patch: 4,
            channels: 64,
            blocks: 4,
            layers: 2,
            volume_preserving: false,
            shared_map: false,
        });
        info.pixels = Preprocessing::Gaussian { std: 0.05 };
        info.class_names = (0..classes).map(|class| format!("{class}")).collect();
        info.weights_sha256 = "tarflow".into();
        info.training = None;
        info.inferred = Some(vec!["4 blocks of 2 layers: counted in the names".into()]);
        self.opened(info);
    }

    /// The first classes of the waiting inspection are evaluated.
    pub fn run_posterior(&self, evaluated: usize) {
        let mut state = self.state();
        let request = state.inspect.clone().expect("an inspection was asked for");
        let tile = tile(0, 1.0);
        let running = Running::new(&tile.posterior.log_likelihood[..evaluated], &Prior::uniform(10), Smoothing::ONE);
        let InspectRequest { generation, subject, .. } = request;
        let pixels = bytes(&tile);
        state.running = Some(RunningPosterior { generation, subject, shape: SHAPE, pixels, running });
    }

    /// Answers the waiting drawing by the posterior of a sample: class `index` is the decision.
    pub fn answer_sketch(&self, index: usize) {
        let mut state = self.state();
        let Some(request) = state.sketch.take() else { return };
        let tile = tile(index, 1.0);
        let ground = request.sketch.ground.as_ref().map(|_| Arc::new(bytes(&super::images::tile(3, 1.0))));
        let cells = (0..16).map(|cell| f64::from(cell) - 7.5).collect();
        let evidence = request.evidence.then_some(([1, 2], Evidence { rows: 4, columns: 4, cells, total: 0.0 }));
        let (posterior, took) = ((*tile.posterior).clone(), std::time::Duration::from_millis(3));
        state.sketched = Some(SketchAnswer { request, shape: SHAPE, ground, posterior, evidence, took });
    }

    /// Answers a request for key pictures by the pictures of tiles.
    pub fn answer_keys(&self, KeyRequest { origin, wanted, .. }: KeyRequest) {
        let one = |tau: Tau, index: usize| (tau, index, Some(bytes(&tile(index, tau.get()))));
        let pictures = wanted.iter().flat_map(|(tau, images)| images.iter().map(move |&index| one(*tau, index)));
        self.state().keys = Some(KeyPictures { origin, shape: SHAPE, pictures: pictures.collect(), too_slow: None });
    }

    /// Says that key pictures take too long here.
    pub fn refuse_keys(&self, KeyRequest { origin, .. }: KeyRequest) {
        let too_slow = Some(std::time::Duration::from_secs(1));
        self.state().keys = Some(KeyPictures { origin, shape: SHAPE, pictures: Vec::new(), too_slow });
    }
}

impl Engine for Fake {
    fn submit(&self, job: Job, world: Option<String>) -> JobId {
        let mut state = self.state();
        let id = state.jobs.len() as JobId + 1;
        state.jobs.push((id, job));
        state.meant.push(world);
        id
    }

    fn show(&self, request: GalleryRequest) {
        let mut state = self.state();
        state.shown += 1;
        state.pending = Some(request);
    }

    fn inspect(&self, request: InspectRequest) {
        self.state().inspect = Some(request);
    }

    fn explain(&self, request: EvidenceRequest) {
        self.state().explain = Some(request);
    }

    fn sketch(&self, request: SketchRequest) {
        let mut state = self.state();
        state.sketches += 1;
        state.sketch = Some(request);
    }

    fn draw_keys(&self, request: KeyRequest) {
        self.state().key_requests.push(request);
    }

    fn ask(&self, question: Question) {
        self.state().questions.push(question);
    }

    fn use_checkpoint(&self, run: PathBuf) -> JobId {
        let mut state = self.state();
        state.checkpoints.push(run);
        700 + state.checkpoints.len() as JobId
    }

    fn open_cell_images(&self, request: CellImagesRequest) -> JobId {
        let mut state = self.state();
        let id = 800 + state.cell_images.len() as JobId;
        state.cell_images.push((id, request));
        id
    }

    fn open_judged_images(&self, request: JudgedImagesRequest) -> JobId {
        let mut state = self.state();
        let id = 850 + state.judged.len() as JobId;
        state.judged.push((id, request));
        id
    }

    fn fetch(&self, request: FetchRequest) -> JobId {
        let mut state = self.state();
        let id = 900 + state.fetches.len() as JobId;
        state.fetches.push((id, request));
        id
    }

    fn glimpse(&self, worlds: Vec<&'static str>) {
        self.state().glimpsed.extend(worlds);
    }

    fn watch(&self, request: WatchRequest) {
        self.state().watched = request;
    }

    fn cancel(&self, id: JobId) {
        self.state().cancelled.push(id);
    }

    fn set_paused(&self, id: JobId, paused: bool) {
        self.state().pauses.push((id, paused));
    }

    fn poll(&self) -> Option<Event> {
        self.state().events.pop_front()
    }

    fn take_gallery(&self) -> Option<GalleryUpdate> {
        self.state().gallery.take()
    }

    fn take_inspection(&self) -> Option<Inspection> {
        self.state().inspection.take()
    }

    fn take_running(&self) -> Option<RunningPosterior> {
        self.state().running.take()
    }

    fn take_evidence(&self) -> Option<EvidenceMap> {
        self.state().evidence.take()
    }

    fn take_sketch(&self) -> Option<SketchAnswer> {
        self.state().sketched.take()
    }

    fn take_keys(&self) -> Option<KeyPictures> {
        self.state().keys.take()
    }
}

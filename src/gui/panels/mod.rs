//! The docked panels. One list feeds the tabs, the palette and the tests: a new panel is one file and one line here.

pub mod bayes;
pub mod experiments;
pub mod export;
pub(super) mod fields;
pub mod gallery;
pub mod hardness;
pub mod judge;
mod log;
pub mod training;
pub mod validate;
mod walk;

use eframe::egui::{self, Response, RichText, Ui, WidgetText};
use egui_tiles::{Tile, TileId, Tiles, Tree, UiResponse};
use serde::{Deserialize, Serialize};

use super::context::{Cx, Panel};

/// Every panel, in the order of the tabs.
pub fn registry() -> Vec<Box<dyn Panel>> {
    vec![
        Box::<gallery::GalleryPanel>::default(),
        Box::<bayes::BayesPanel>::default(),
        Box::<experiments::ExperimentsPanel>::default(),
        Box::<hardness::HardnessPanel>::default(),
        Box::<export::ExportPanel>::default(),
        Box::<judge::JudgePanel>::default(),
        Box::<validate::ValidatePanel>::default(),
        Box::<walk::WalkPanel>::default(),
        Box::<training::TrainingPanel>::default(),
        Box::<log::LogPanel>::default(),
    ]
}

/// Size of the text of a tab and room beside it, points: small, so that all tabs fit between card and inspector.
const TAB_TEXT: f32 = 12.0;
const TAB_SPACING: f32 = 5.0;

/// A panel in a saved layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pane(pub String);

/// All panels as tabs.
pub fn default_layout(panels: &[Box<dyn Panel>]) -> Tree<Pane> {
    let panes: Vec<Pane> = panels.iter().map(|panel| Pane(panel.id().into())).collect();
    let mut tree = Tree::new_tabs(egui::Id::unique("panels"), panes);
    activate(&mut tree, gallery::ID);
    tree
}

/// A saved layout, if it still shows every panel there is.
pub fn restore_layout(saved: Option<Tree<Pane>>, panels: &[Box<dyn Panel>]) -> Tree<Pane> {
    let complete = |tree: &Tree<Pane>| {
        let shown = |id: &str| tree.tiles.tiles().any(|tile| matches!(tile, Tile::Pane(pane) if pane.0 == id));
        panels.iter().all(|panel| shown(panel.id()))
    };
    saved.filter(complete).unwrap_or_else(|| default_layout(panels))
}

/// Brings a panel to the front.
pub fn activate(tree: &mut Tree<Pane>, id: &str) {
    tree.make_active(|_, tile| matches!(tile, Tile::Pane(pane) if pane.0 == id));
}

pub fn show(ui: &mut Ui, tree: &mut Tree<Pane>, panels: &mut [Box<dyn Panel>], cx: &mut Cx) {
    cx.view.primary.begin();
    tree.ui(&mut Dock { panels, cx }, ui);
}

struct Dock<'a, 'b> {
    panels: &'a mut [Box<dyn Panel>],
    cx: &'a mut Cx<'b>,
}

impl egui_tiles::Behavior<Pane> for Dock<'_, '_> {
    fn pane_ui(&mut self, ui: &mut Ui, _: TileId, pane: &mut Pane) -> UiResponse {
        if let Some(panel) = self.panels.iter_mut().find(|panel| panel.id() == pane.0) {
            self.cx.view.primary.enter(&pane.0, ui);
            egui::Frame::new().inner_margin(8.0).show(ui, |ui| panel.ui(ui, self.cx));
        }
        UiResponse::None
    }

    fn tab_title_for_pane(&mut self, pane: &Pane) -> WidgetText {
        let panel = self.panels.iter().find(|panel| panel.id() == pane.0);
        RichText::new(panel.map_or_else(|| pane.0.as_str(), |panel| panel.title())).size(TAB_TEXT).into()
    }

    fn on_tab_button(&mut self, tiles: &mut Tiles<Pane>, tile: TileId, button: Response) -> Response {
        if let (true, Some(Tile::Pane(pane))) = (button.clicked(), tiles.get(tile)) {
            self.cx.view.primary.bring(&pane.0);
        }
        button
    }

    fn tab_title_spacing(&self, _: &egui::Visuals) -> f32 {
        TAB_SPACING
    }

    fn retain_pane(&mut self, pane: &Pane) -> bool {
        self.panels.iter().any(|panel| panel.id() == pane.0)
    }

    fn simplification_options(&self) -> egui_tiles::SimplificationOptions {
        egui_tiles::SimplificationOptions { all_panes_must_have_tabs: true, ..Default::default() }
    }
}

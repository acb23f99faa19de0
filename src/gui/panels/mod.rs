//! The docked panels. A new panel is one file and one line here: tabs, palette and tests follow.

pub mod bayes;
pub mod draw;
pub mod experiments;
pub mod export;
pub(super) mod fields;
pub mod gallery;
pub mod hardness;
pub mod judge;
mod log;
pub mod monitor;
mod spec_file;
mod tabs;
mod task_panel;
pub mod training;
pub mod validate;
mod walk;
mod what_if;

use std::collections::HashMap;

use eframe::egui::{self, Id, Response, Ui, WidgetText};
use egui_tiles::{TabState, Tile, TileId, Tiles, Tree, UiResponse};
use serde::{Deserialize, Serialize};

use super::context::{Cx, Panel};

/// A panel with the name it has in saved layouts and the title of its tab.
pub struct Docked {
    pub id: &'static str,
    pub title: &'static str,
    panel: Box<dyn Panel>,
}

fn docked<P: Panel + Default + 'static>(id: &'static str, title: &'static str) -> Docked {
    Docked { id, title, panel: Box::<P>::default() }
}

/// Every panel, in the order of the tabs.
pub fn registry() -> Vec<Docked> {
    vec![
        docked::<gallery::GalleryPanel>(gallery::ID, "Gallery"),
        docked::<bayes::BayesPanel>(bayes::ID, "Bayes error"),
        docked::<experiments::ExperimentsPanel>(experiments::ID, "Experiments"),
        docked::<monitor::MonitorPanel>(monitor::ID, "Monitor"),
        docked::<hardness::HardnessPanel>(hardness::ID, "Hardness"),
        docked::<export::ExportPanel>(export::ID, "Export"),
        docked::<judge::JudgePanel>(judge::ID, "My classifier"),
        docked::<validate::ValidatePanel>(validate::ID, "Validation"),
        docked::<walk::WalkPanel>(walk::ID, "Walk"),
        docked::<what_if::WhatIfPanel>(what_if::ID, "What if"),
        docked::<draw::DrawPanel>(draw::ID, "Draw"),
        docked::<training::TrainingPanel>(training::ID, "Oracle training"),
        docked::<log::LogPanel>("log", "Log"),
    ]
}

/// A panel in a saved layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pane(pub String);

/// All panels as tabs.
pub fn default_layout(panels: &[Docked]) -> Tree<Pane> {
    let panes: Vec<Pane> = panels.iter().map(|panel| Pane(panel.id.into())).collect();
    let mut tree = Tree::new_tabs(egui::Id::unique("panels"), panes);
    activate(&mut tree, gallery::ID);
    tree
}

/// A saved layout, if it still shows every panel there is.
pub fn restore_layout(saved: Option<Tree<Pane>>, panels: &[Docked]) -> Tree<Pane> {
    let complete = |tree: &Tree<Pane>| {
        let shown = |id: &str| tree.tiles.tiles().any(|tile| matches!(tile, Tile::Pane(pane) if pane.0 == id));
        panels.iter().all(|panel| shown(panel.id))
    };
    saved.filter(complete).unwrap_or_else(|| default_layout(panels))
}

/// Brings a panel to the front.
pub fn activate(tree: &mut Tree<Pane>, id: &str) {
    tree.make_active(|_, tile| matches!(tile, Tile::Pane(pane) if pane.0 == id));
}

pub fn show(ui: &mut Ui, tree: &mut Tree<Pane>, panels: &mut [Docked], cx: &mut Cx) {
    cx.view.primary.begin();
    let mut dock = Dock { panels, cx, places: HashMap::new(), rows: 1 };
    dock.arrange(ui, tree);
    tree.ui(&mut dock, ui);
}

struct Dock<'a, 'b> {
    panels: &'a mut [Docked],
    cx: &'a mut Cx<'b>,
    /// Where each tab stands in its bar.
    places: HashMap<TileId, tabs::Place>,
    /// Rows of tabs.
    rows: usize,
}

impl egui_tiles::Behavior<Pane> for Dock<'_, '_> {
    fn pane_ui(&mut self, ui: &mut Ui, _: TileId, pane: &mut Pane) -> UiResponse {
        if let Some(docked) = self.panels.iter_mut().find(|docked| docked.id == pane.0) {
            let entered = self.cx.view.primary.enter(&pane.0, ui);
            tabs::entrance(ui, docked.title, entered);
            egui::Frame::new().inner_margin(8.0).show(ui, |ui| docked.panel.ui(ui, self.cx));
        }
        UiResponse::None
    }

    fn tab_title_for_pane(&mut self, pane: &Pane) -> WidgetText {
        let panel = self.panels.iter().find(|panel| panel.id == pane.0);
        tabs::title(panel.map_or_else(|| pane.0.as_str(), |panel| panel.title)).into()
    }

    fn on_tab_button(&mut self, tiles: &mut Tiles<Pane>, tile: TileId, button: Response) -> Response {
        if let (true, Some(Tile::Pane(pane))) = (button.clicked(), tiles.get(tile)) {
            self.cx.view.primary.bring(&pane.0);
        }
        button
    }

    fn tab_bar_height(&self, _: &egui::Style) -> f32 {
        tabs::ROW * self.rows as f32
    }

    fn tab_ui(&mut self, tiles: &mut Tiles<Pane>, ui: &mut Ui, id: Id, tile: TileId, state: &TabState) -> Response {
        self.tab(tiles, ui, id, tile, state)
    }

    fn retain_pane(&mut self, pane: &Pane) -> bool {
        self.panels.iter().any(|panel| panel.id == pane.0)
    }

    fn simplification_options(&self) -> egui_tiles::SimplificationOptions {
        egui_tiles::SimplificationOptions { all_panes_must_have_tabs: true, ..Default::default() }
    }
}

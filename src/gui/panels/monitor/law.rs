//! The law of KL over the number of training images of the external runs in sight, below their courses.

use std::collections::BTreeSet;
use std::sync::Arc;

use eframe::egui::Ui;

use crate::figure::Figure;
use crate::gui::background::BackgroundTask;
use crate::gui::context::Cx;
use crate::gui::panels::experiments::law::exponent;
use crate::gui::plot::{About, Board};
use crate::gui::theme::Badge;
use crate::gui::widgets::{heading, hint};
use crate::run::external::{ExternalFolder, StepFigures, law_at};

/// Different N that a law needs.
const SIZES: usize = 3;

/// External runs that say their N and have a step: that with the smallest KL.
#[derive(Debug, Default, PartialEq)]
pub struct Given {
    /// By their folders: runs of equal N are seeds in this order.
    pub points: Vec<(ExternalFolder, Option<StepFigures>)>,
    /// Names of those that do not say their N, while others do.
    pub lacking: Vec<String>,
}

/// The law, and what it was made of.
#[derive(Default)]
pub struct LawPlot {
    given: Arc<Given>,
    work: BackgroundTask<Result<Fitted, String>>,
    fitted: Option<Result<Fitted, String>>,
    board: Board,
}

/// The law as it is shown.
struct Fitted {
    figure: Arc<Figure>,
    sentence: String,
}

impl LawPlot {
    /// Shows the law; nothing where the runs are of fewer than three different N.
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx, given: &Arc<Given>) {
        if let Some(fitted) = self.work.poll() {
            self.fitted = Some(fitted);
        }
        self.refresh(ui, given);
        if self.fitted.is_some() || self.work.waiting() {
            let about = "Each run at its step with the smallest KL; the band is the 95 % interval of the fitted curve";
            heading(ui, "KL over the number of training images", Some((Badge::Estimated, about)));
        }
        match &self.fitted {
            Some(Ok(Fitted { figure, sentence })) => {
                let about =
                    About { name: Some("KL over the number of training images"), height: 300.0, ..About::default() };
                self.board.show_shared(ui, cx, figure, &about);
                drop(ui.label(sentence));
                hint(ui, figure.caption.clone());
            }
            Some(Err(why)) => hint(ui, format!("No law: {why}")),
            None if self.work.waiting() => hint(ui, "The law is being fitted…"),
            None => {}
        }
        if !given.lacking.is_empty() {
            let names = given.lacking.join(", ");
            hint(ui, format!("Not in the law over N, for their run.toml has no external.train_images: {names}"));
        }
    }

    /// Fits again, on a thread of its own, where a best step has changed; what was fitted stays until then.
    fn refresh(&mut self, ui: &Ui, given: &Arc<Given>) {
        if Arc::ptr_eq(&self.given, given) || self.work.waiting() {
            return;
        }
        let before = std::mem::replace(&mut self.given, given.clone());
        if before.points == given.points {
            return;
        }
        let sizes = given.points.iter().map(|(folder, _)| folder.spec.external.train_images);
        if sizes.collect::<BTreeSet<_>>().len() < SIZES {
            self.fitted = None;
            return;
        }
        let given = given.clone();
        self.work = BackgroundTask::start(ui.ctx(), "law over N", move || fit(&given));
    }
}

fn fit(given: &Given) -> Result<Fitted, String> {
    let law = law_at(&given.points).map_err(|error| error.to_string())?;
    let sentence = format!("{}. {}", exponent(law.fits.law()), law.fits.sentence);
    Ok(Fitted { figure: Arc::new(law.figure()), sentence })
}

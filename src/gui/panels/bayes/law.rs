//! Whose figures are shown while those of the knobs are not there.

use eframe::egui::Ui;

use crate::gui::context::Cx;
use crate::gui::plot::of_before;
use crate::gui::widgets::complain;
use crate::oracle::world::LabelLaw;

/// Says which law of labels figures are of that are not those of the knobs. What is sampled says it once, beside its button.
pub fn tell(ui: &mut Ui, cx: &Cx, law: Option<&LabelLaw>) {
    let sampled = cx.session.bayes.must_be_sampled() == Some(true);
    let then = law.filter(|_| !sampled).and_then(|law| of_before(law, &cx.prefs.settings().label_law()));
    if let Some(then) = then {
        complain(ui, &format!("Of the knobs before: {then}."));
    }
}

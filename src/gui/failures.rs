//! Why a job failed is said once where it was asked for: by its panel, if that is on show, else by a notice.

use std::collections::BTreeSet;

use eframe::egui::{Context, Id, Label, Response, RichText, Ui};

use super::theme::Theme;
use crate::worker::protocol::JobId;

/// Says in a panel why a job failed.
pub fn show(ui: &mut Ui, job: JobId, why: &str) {
    let text = RichText::new(why).color(Theme::of(ui).error());
    seen(&ui.add(Label::new(text).wrap().selectable(true)), job);
}

/// What was painted says why a job failed, if any of it is in view.
pub fn seen(painted: &Response, job: JobId) {
    if painted.interact_rect.is_positive() {
        tell(&painted.ctx, job);
    }
}

/// A panel says in this frame why a job failed.
pub fn tell(ctx: &Context, job: JobId) {
    ctx.data_mut(|data| data.get_temp_mut_or_default::<BTreeSet<JobId>>(place()).insert(job));
}

/// The jobs whose failures panels have told since this was asked last.
pub fn take_told(ctx: &Context) -> BTreeSet<JobId> {
    ctx.data_mut(|data| data.remove_temp(place())).unwrap_or_default()
}

fn place() -> Id {
    Id::unique("failures told")
}

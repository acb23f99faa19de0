//! The classes in order of hardness at several τ; by EBO 4.3 the order stays the same.

use eframe::egui::{self, Label, RichText, Ui};

use super::law;
use crate::bayes::{ClassRanking, RANKED_AT};
use crate::figure::Records;
use crate::gui::context::Cx;
use crate::gui::plot::{comments, of_law, of_world};
use crate::gui::sampled_error;
use crate::gui::session::Session;
use crate::gui::table_window;
use crate::gui::theme::{Badge, Theme};
use crate::gui::widgets::{heading, hint};

/// As many classes are shown; the others are in the table of numbers.
const SHOWN: usize = 20;

/// A row for each τ.
pub fn show(ui: &mut Ui, cx: &mut Cx) {
    let why = "The classes by their one-vs-rest Bayes errors, to 1 %, at temperatures of its own: the world's τ has no part in it.";
    heading(ui, "Ranking of classes over τ", Some((Badge::Estimated, why)));
    let session = cx.session;
    let stream = &session.bayes.rankings;
    let theme = Theme::of(ui);
    if let Some(why) = &stream.trouble {
        ui.colored_label(theme.error(), why);
        return;
    }
    let found = &stream.value;
    if found.rankings.is_empty() {
        hint(ui, sampled_error::pending(cx));
        return;
    }
    ui.horizontal_wrapped(|ui| {
        table_window::button(ui, cx.view, "Ranking of classes over τ", "class-ranking.csv", || csv(session));
        let classes = found.rankings.iter().map(|ranking| ranking.classes.len()).max().unwrap_or(0);
        let more = if classes > SHOWN { format!(" The {SHOWN} hardest of {classes}.") } else { String::new() };
        hint(ui, format!("Hardest first; ≈ where intervals do not tell a class from the next.{more}"));
    });
    law::tell(ui, cx, session.bayes.rankings_of.as_ref());
    egui::ScrollArea::horizontal().id_salt("ranking over tau").show(ui, |ui| {
        egui::Grid::new("ranking over tau").spacing([10.0, 2.0]).show(ui, |ui| {
            for ranking in &found.rankings {
                row(ui, session, ranking, theme);
                ui.end_row();
            }
        });
    });
    match &found.agreement {
        _ if found.rankings.len() < RANKED_AT.len() => hint(ui, sampled_error::pending(cx)),
        Some(agreement) => drop(ui.add(Label::new(agreement.words(|class| session.class_name(class))).wrap())),
        None => {}
    }
}

fn row(ui: &mut Ui, session: &Session, ranking: &ClassRanking, theme: Theme) {
    ui.label(RichText::new(format!("τ = {}", ranking.tau)).strong());
    let classes = session.class_names().len();
    // Nothing follows the last one.
    let apart = ranking.apart().chain([true]);
    for (class, apart) in ranking.order().zip(apart).take(SHOWN) {
        let sign = if apart { "" } else { " ≈" };
        ui.label(RichText::new(format!("{}{sign}", session.class_name(class))).color(theme.class(class, classes)));
    }
}

/// The rankings as comma-separated values.
fn csv(session: &Session) -> String {
    let rankings = session.bayes.rankings.value.rankings.iter();
    let places = rankings
        .flat_map(|ranking| ranking.classes.iter().enumerate().map(move |(place, one)| (ranking.tau, place + 1, one)));
    let lines = Records::of(places)
        .field("tau", |(tau, ..)| tau)
        .field("place", |(_, place, _)| place)
        .field("class", |(.., one)| session.class_name(one.class))
        .field("one_vs_rest_bayes_error", |(.., one)| one.one_vs_rest.value)
        .field("low_95", |(.., one)| one.one_vs_rest.interval.0)
        .field("high_95", |(.., one)| one.one_vs_rest.interval.1);
    let law = session.bayes.rankings_of.as_ref().map(of_law).unwrap_or_default();
    let origin = comments(&of_world(session, None, &law));
    format!("# plot: ranking of classes over tau, hardest first\n{origin}{}", lines.text())
}

//! The inspector's evidence map: which part of the image speaks for one class and against another.

use eframe::egui::{self, Color32, ComboBox, Rect, Role, Sense, Slider, Ui, WidgetInfo, pos2, vec2};

use super::context::Cx;
use super::format;
use super::glossary;
use super::inspected::called;
use super::inspector::waiting;
use super::paint::{HeatMap, Ramp, Sheet, picture};
use super::plot::{self, comments, of_world};
use super::selection::Source;
use super::session::Session;
use super::table_window;
use super::theme::{Badge, Theme, UNTINTED};
use super::widgets::{heading, hint};
use crate::figure::{Cells, Figure, Grid, Records};
use crate::flow::Architecture;
use crate::oracle::evidence::leaders;
use crate::oracle::posterior::Posterior;
use crate::units::ClassId;
use crate::worker::protocol::{Asked, EvidenceMap, EvidenceRequest};

/// Steps of the colour scale.
const SCALE: usize = 64;

/// What colours a map.
#[derive(Clone, Copy, PartialEq)]
struct MapStyle {
    theme: Theme,
    overlay: bool,
    strength: f32,
}

impl MapStyle {
    /// The colour of a share of the scale, −1 to 1.
    fn colour(self, share: f32) -> Color32 {
        if self.overlay { self.theme.veil(share, self.strength) } else { self.theme.diverging(share) }
    }
}

/// The map on show: which one, as what, its picture and its cells.
struct Drawn {
    generation: u64,
    style: MapStyle,
    picture: Sheet,
    cells: Sheet,
}

/// The textures of the map on show.
#[derive(Default)]
pub struct EvidenceSection {
    drawn: Option<Drawn>,
}

impl EvidenceSection {
    /// Shows it for the image whose posterior this is. Returns whether it is on its way.
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx, posterior: &Posterior) -> bool {
        let Some(leading) = leaders(posterior) else { return false };
        let classes = posterior.probabilities.len();
        cx.view.evidence = cx.view.evidence.filter(|(a, b)| *a < classes && *b < classes && a != b);
        let (a, b) = cx.view.evidence.unwrap_or(leading);
        heading(ui, "Evidence map", Some((Badge::Exact, &meaning(cx))));
        choose(ui, cx, (a, b));
        if cx.prefs.tau == 0.0 {
            hint(ui, "At τ = 0 there is no density, and so no evidence map.");
            return false;
        }
        cx.view.evidence_wanted = Some((a, b));
        let Some(subject) = cx.view.subject(cx.session, cx.prefs) else { return false };
        let Some(map) = cx.session.evidence_of(&subject, a, b) else {
            let lost = cx.session.external.as_ref().is_some_and(|external| external.settings.is_none());
            if lost && cx.view.source == Source::Outside {
                hint(ui, "The engine no longer has this image: open it again.");
                return false;
            }
            hint(ui, waiting(cx.session, Asked::Evidence, "Computing…"));
            return !cx.session.unanswered.contains_key(&Asked::Evidence);
        };
        mode(ui, cx);
        ui.horizontal_wrapped(|ui| {
            let session = cx.session;
            table_window::button(ui, cx.view, "evidence map", "evidence.csv", || csv(session, map));
            plot::buttons(ui, cx, "Evidence map", || figure(session, map));
        });
        self.paint(ui, cx, map);
        total(ui, cx, map, posterior);
        false
    }

    /// Picture and map, and the scale below.
    fn paint(&mut self, ui: &mut Ui, cx: &Cx, map: &EvidenceMap) {
        let (overlay, strength) = (cx.prefs.evidence_overlay, cx.prefs.evidence_strength);
        let style = MapStyle { theme: Theme::of(ui), overlay, strength };
        let Drawn { picture, cells, .. } = self.drawn(ui, map, style);
        let gap = 8.0;
        let room = if overlay { ui.available_width() } else { (ui.available_width() - gap) / 2.0 };
        let aspect = map.shape.height as f32 / map.shape.width as f32;
        let size = vec2(1.0, aspect) * room.min(260.0);
        let whole = if overlay { size } else { vec2(2.0 * size.x + gap, size.y) };
        let (rect, response) = ui.allocate_exact_size(whole, Sense::hover());
        let uv = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
        let left = Rect::from_min_size(rect.min, size);
        let place = if overlay { left } else { left.translate(vec2(size.x + gap, 0.0)) };
        ui.painter().image(picture.id(), left, uv, UNTINTED);
        ui.painter().image(cells.id(), place, uv, UNTINTED);
        let about = format!("Evidence map, total {} nats", signed(map.evidence.total));
        response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &about));
        if let Some((row, column)) =
            response.hover_pos().and_then(|at| cell(map, if place.contains(at) { place } else { left }, at))
        {
            let nats = map.evidence.cells[row * map.evidence.columns + column];
            let (a, b) = (cx.session.class_name(map.request.a), cx.session.class_name(map.request.b));
            response.on_hover_ui_at_pointer(|ui| {
                ui.strong(format!("{} nats", signed(nats)));
                ui.label(format!("for {a} against {b}, row {} column {}", row + 1, column + 1));
            });
        }
        legend(ui, cx, map, (style, whole.x));
    }

    /// The map on show; where only its style changed, it is coloured anew.
    fn drawn(&mut self, ui: &Ui, map: &EvidenceMap, style: MapStyle) -> &Drawn {
        let generation = map.request.generation;
        let drawn = match self.drawn.take().filter(|drawn| drawn.generation == generation) {
            Some(drawn) if drawn.style == style => drawn,
            Some(mut drawn) => {
                drawn.cells.heat(&heat_map(map, style));
                Drawn { style, ..drawn }
            }
            None => {
                let picture = Sheet::of(ui.ctx(), "evidence picture", map.shape, &map.pixels);
                let mut cells = Sheet::new(ui.ctx(), "evidence cells", [map.evidence.columns, map.evidence.rows]);
                cells.heat(&heat_map(map, style));
                Drawn { generation, style, picture, cells }
            }
        };
        self.drawn.insert(drawn)
    }
}

/// The cell under a point.
fn cell(map: &EvidenceMap, place: Rect, at: egui::Pos2) -> Option<(usize, usize)> {
    let share = (at - place.min) / place.size();
    let inside = (0.0..1.0).contains(&share.x) && (0.0..1.0).contains(&share.y);
    let index = |share: f32, cells: usize| ((share * cells as f32) as usize).min(cells.saturating_sub(1));
    inside.then(|| (index(share.y, map.evidence.rows), index(share.x, map.evidence.columns)))
}

/// What the map is of: world, knobs and image.
fn origin(session: &Session, map: &EvidenceMap) -> Vec<(String, String)> {
    of_world(session, Some(&map.request.settings), &[("image", called(session, &map.request.subject))])
}

/// The cells as comma-separated values.
fn csv(session: &Session, map: &EvidenceMap) -> String {
    let [a, b] = [map.request.a, map.request.b].map(|class| session.class_name(class));
    let columns = map.evidence.columns.max(1);
    let lines = Records::of(map.evidence.cells.iter().enumerate())
        .field("row", |(i, _)| 1 + i / columns)
        .field("column", |(i, _)| 1 + i % columns)
        .field("nats", |(_, nats)| *nats);
    let about = format!(
        "# plot: evidence for {a} against {b}, log p(x|a) - log p(x|b)\n# total: {} nats\n",
        map.evidence.total
    );
    about + &comments(&origin(session, map)) + &lines.text()
}

/// Picture and map as a figure; the map alone where the picture lies on a device that paints it.
fn figure(session: &Session, map: &EvidenceMap) -> Figure {
    let [a, b] = [map.request.a, map.request.b].map(|class| session.class_name(class).to_owned());
    let pixels = map.pixels.bytes().map(|bytes| picture(map.shape, bytes).pixels);
    let pixels = pixels.map(|pixels| Cells::Pixels(pixels.iter().map(|at| [at.r(), at.g(), at.b()]).collect()));
    let (values, unit, sides) = (map.evidence.cells.clone(), "nats".to_owned(), [b.clone(), a.clone()]);
    let evidence = Grid { columns: map.evidence.columns, cells: Cells::Numbers { values, unit, sides } };
    let image = pixels.map(|cells| ("image".to_owned(), Grid { columns: map.shape.width, cells }));
    Figure {
        id: "evidence".into(),
        title: format!("Evidence for {a} against {b}"),
        caption: format!(
            "The squares add up to log p(x|{a}) − log p(x|{b}) = {} nats: orange speaks for {a}, blue for {b}.",
            signed(map.evidence.total)
        ),
        provenance: origin(session, map),
        ..Figure::of_grids(image.into_iter().chain([("evidence".to_owned(), evidence)]))
    }
}

fn heat_map(map: &EvidenceMap, style: MapStyle) -> HeatMap<'_> {
    HeatMap {
        size: [map.evidence.columns, map.evidence.rows],
        values: &map.evidence.cells,
        in_place: map.cells.as_ref(),
        extent: map.evidence.extent(),
        ramp: Ramp::new(|share| style.colour(share)),
    }
}

fn meaning(cx: &Cx) -> String {
    let place = match cx.session.oracle.as_ref().map(|info| &info.architecture) {
        Some(Architecture::TarFlow(_)) => {
            "A cell is a patch: the terms of its token, given the tokens before it in each block's order."
        }
        _ => {
            "A cell is a position of the latent, drawn at the pixels it came from; the log-determinant is the same for \
              both classes and cancels."
        }
    };
    format!("log p(x|a) - log p(x|b) as a sum over places: the cells add up to the total. {place}")
}

/// Two different classes to choose. Returns them where they have changed; `of` tells these fields from others.
pub fn class_pair(ui: &mut Ui, session: &Session, (a, b): (ClassId, ClassId), of: &str) -> Option<(ClassId, ClassId)> {
    let (mut for_class, mut against) = (a, b);
    for (text, name, chosen, other) in
        [("for", "Evidence for class", &mut for_class, b), ("against", "Evidence against class", &mut against, a)]
    {
        ui.label(text);
        let combo = ComboBox::from_id_salt(name).width(58.0).truncate();
        let response = combo.selected_text(session.class_name(*chosen)).show_ui(ui, |ui| {
            for class in (0..session.class_names().len()).filter(|class| *class != other) {
                ui.selectable_value(chosen, class, session.class_name(class));
            }
        });
        glossary::explain(response.response, name).accessible_name(format!("{name}{of}"));
    }
    ((for_class, against) != (a, b)).then_some((for_class, against))
}

fn choose(ui: &mut Ui, cx: &mut Cx, (a, b): (ClassId, ClassId)) {
    ui.horizontal_wrapped(|ui| {
        if let Some(pair) = class_pair(ui, cx.session, (a, b), "") {
            cx.view.evidence = Some(pair);
        }
        if ui.button("Swap").on_hover_text("Turn the question round").clicked() {
            cx.view.evidence = Some((b, a));
        }
        let follows = cx.view.evidence.is_none();
        let button = ui.add_enabled(!follows, egui::Button::new("Top two classes"));
        if button.on_hover_text("The decision against the runner-up, for every image its own").clicked() {
            cx.view.evidence = None;
        }
    });
}

/// On the picture or beside it.
fn mode(ui: &mut Ui, cx: &mut Cx) {
    ui.horizontal_wrapped(|ui| {
        ui.selectable_value(&mut cx.prefs.evidence_overlay, true, "on the picture");
        ui.selectable_value(&mut cx.prefs.evidence_overlay, false, "beside it");
        if cx.prefs.evidence_overlay {
            ui.spacing_mut().slider_width = 70.0;
            let mut percent = 100.0 * cx.prefs.evidence_strength;
            let slider = Slider::new(&mut percent, 0.0..=100.0).max_decimals(0).suffix(" %");
            let slider = ui.add(slider).on_hover_text("How strongly the map covers the picture");
            if slider.accessible_name("Strength of the evidence map").changed() {
                cx.prefs.evidence_strength = percent / 100.0;
            }
        }
    });
}

/// The colour scale: what speaks for b on the left, for a on the right.
fn legend(ui: &mut Ui, cx: &Cx, map: &EvidenceMap, (style, width): (MapStyle, f32)) {
    let theme = style.theme;
    let (rect, response) = ui.allocate_exact_size(vec2(width, 10.0), Sense::hover());
    let step = rect.width() / SCALE as f32;
    if style.overlay {
        ui.painter().rect_filled(rect, 0.0, theme.trough());
    }
    for i in 0..SCALE {
        let share = 2.0 * (i as f32 + 0.5) / SCALE as f32 - 1.0;
        let corner = pos2(rect.min.x + i as f32 * step, rect.min.y);
        ui.painter().rect_filled(Rect::from_min_size(corner, vec2(step, rect.height())), 0.0, style.colour(share));
    }
    let extent = format::sig4(map.evidence.extent());
    response.widget_info(|| {
        WidgetInfo::labeled(Role::Image, true, format!("Scale of the evidence, ±{extent} nats a cell"))
    });
    let (a, b) = (cx.session.class_name(map.request.a), cx.session.class_name(map.request.b));
    ui.allocate_ui_with_layout(vec2(width, 14.0), egui::Layout::left_to_right(egui::Align::Center), |ui| {
        let small = |text: String| egui::RichText::new(text).small().color(theme.weak());
        ui.label(small(format!("-{extent} ({b})")));
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            ui.label(small(format!("+{extent} nats ({a})")));
        });
    });
}

/// What the total makes of the prior odds. Where labels are noisy, the posterior beside it is of the label, and its odds are others.
fn odds([a, b]: [&str; 2], map: &EvidenceMap) -> String {
    let EvidenceRequest { settings, a: for_class, b: against, .. } = &map.request;
    let prior = settings.prior.probabilities();
    let prior_odds = prior.get(*for_class).zip(prior.get(*against)).map_or(f64::NAN, |(a, b)| (a / b).ln());
    let text = format!(
        "The {} cells add up to {} nats. With log π({a})/π({b}) = {} nats the log posterior odds of the class at T = 1 are {} nats.",
        map.evidence.cells.len(),
        signed(map.evidence.sum()),
        signed(prior_odds),
        signed(map.evidence.total + prior_odds),
    );
    match &settings.label_noise {
        None => text,
        Some(_) => text + " The posterior shown is of the label, which the label noise C draws from the class.",
    }
}

fn total(ui: &mut Ui, cx: &Cx, map: &EvidenceMap, posterior: &Posterior) {
    let (a, b, total) = (map.request.a, map.request.b, map.evidence.total);
    let names @ [for_class, against] = [a, b].map(|class| cx.session.class_name(class));
    let text = format!("log p(x|{for_class}) - log p(x|{against}) = {} nats", signed(total));
    ui.label(text).on_hover_text(odds(names, map));
    if map.request.settings.tau.get() != cx.prefs.tau {
        hint(ui, format!("At τ = {}; the map at the present τ is being computed.", map.request.settings.tau.get()));
        return;
    }
    // The posterior of a shared-map sample is of the image before rounding, the map of x as stored.
    let shown = posterior.log_likelihood[a] - posterior.log_likelihood[b];
    if (shown - total).abs() > 1e-2 * (1.0 + total.abs()) && shown.is_finite() {
        let text = format!("Before x was rounded to 32 bits: {} nats", signed(shown));
        ui.colored_label(Theme::of(ui).warning(), text).on_hover_text(
            "The map is of x as rounded to 32 bits; the posterior above is of the image before. Its pixels saturate.",
        );
    }
}

/// Four digits and the sign.
pub fn signed(nats: f64) -> String {
    let text = format::sig4(nats);
    if nats > 0.0 { format!("+{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ImageShape;
    use crate::flow::Evidence;
    use crate::oracle::label_noise::LabelNoise;
    use crate::oracle::posterior::Prior;
    use crate::oracle::world::{SampleSpec, Settings};
    use crate::units::Seed;
    use crate::worker::protocol::Subject;

    fn map(settings: Settings, total: f64) -> EvidenceMap {
        let subject = Subject::Sample { spec: SampleSpec::new(1, Seed(0)), index: 0 };
        let request = EvidenceRequest { generation: 1, subject, settings, a: 0, b: 1 };
        let shape = ImageShape { channels: 1, height: 4, width: 8 };
        let evidence = Evidence { rows: 2, columns: 4, cells: vec![total / 8.0; 8], total };
        EvidenceMap { request, shape, pixels: vec![0; 32].into(), evidence, cells: None }
    }

    /// log p(x|a)/p(x|b) + log π(a)/π(b) are odds of the class, under label noise too, where the bars are those of the label.
    #[test]
    fn odds_are_of_the_class_at_the_prior_of_the_map() {
        let prior = Prior::new(&[0.75, 0.25]).unwrap();
        let settings = Settings { prior, ..Settings::default_for(2) };
        let text = odds(["4", "9"], &map(settings.clone(), 2.0));
        let expected = format!("log posterior odds of the class at T = 1 are {} nats.", signed(2.0 + 3f64.ln()));
        assert!(text.ends_with(&expected), "{text}");
        let noise = Some(LabelNoise::symmetric(0.2).unwrap());
        let noisy = odds(["4", "9"], &map(Settings { label_noise: noise, ..settings }, 2.0));
        assert!(noisy.starts_with(&text) && noisy.contains("label noise C"), "{noisy}");
    }

    #[test]
    fn a_point_finds_its_cell() {
        let map = map(Settings::default_for(2), 0.0);
        let place = Rect::from_min_size(pos2(10.0, 20.0), vec2(80.0, 40.0));
        assert_eq!(cell(&map, place, pos2(10.0, 20.0)), Some((0, 0)));
        assert_eq!(cell(&map, place, pos2(89.0, 41.0)), Some((1, 3)));
        assert_eq!(cell(&map, place, pos2(91.0, 41.0)), None);
    }
}

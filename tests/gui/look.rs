//! Pictures of the window for people: `BAYESCOPE_PICTURES=/tmp/pictures cargo test --test gui pictures`. Skipped unless
//! that names a folder, since pictures differ between rasterisers.

use bayescope::gui::{App, Look, Prefs};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::fake::{self, Fake};

fn take(harness: &mut Harness<'_, App>, folder: &str, name: &str) {
    match harness.render() {
        Ok(image) => image.save(format!("{folder}/{name}.png")).unwrap(),
        Err(error) => panic!("no picture: {error}"),
    }
}

#[test]
fn pictures() {
    let Ok(folder) = std::env::var("BAYESCOPE_PICTURES") else { return };
    for (look, theme) in [(Look::Light, "light"), (Look::Dark, "dark")] {
        for size in [[1280.0, 800.0], [1920.0, 1080.0]] {
            let fake = Fake::default();
            let engine = std::rc::Rc::new(fake.clone());
            let prefs = Prefs { look, n: 300, tau: 1.4, ..Prefs::default() };
            let builder = Harness::builder().with_size(size).with_render_cursor(false).wgpu();
            let mut harness = builder.build_eframe(move |cc| App::new(&cc.egui_ctx, prefs, engine));
            let tag = format!("{theme}-{}", size[0]);
            take(&mut harness, &folder, &format!("empty-{tag}"));
            fake.open_oracle();
            harness.run_steps(2);
            fake.answer();
            harness.run_steps(2);
            fake.answer();
            harness.run_steps(4);
            take(&mut harness, &folder, &format!("gallery-{tag}"));
            let prior = harness.get_by_label_contains("Class prior");
            prior.click();
            harness.run_steps(4);
            take(&mut harness, &folder, &format!("prior-{tag}"));
            fake.train(&mut harness);
            for (id, title) in harness.state().panel_names() {
                harness.state_mut().show_panel(id);
                harness.run_steps(4);
                super::bayes::answer_all(&mut harness, &fake);
                take(&mut harness, &folder, &format!("{}-{tag}", title.replace(' ', "-")));
            }
            fake.send(fake::external(4));
            harness.run_steps(4);
            take(&mut harness, &folder, &format!("outside-{tag}"));
            for count in [26, 100] {
                fake.open_classes((0..count).map(|class| format!("class {class}")).collect());
                harness.state_mut().show_panel("bayes error");
                harness.run_steps(4);
                super::bayes::answer_all(&mut harness, &fake);
                take(&mut harness, &folder, &format!("classes-{count}-{tag}"));
                let pairs = harness.get_by_label("Bayes errors of pairs of classes");
                pairs.scroll_to_me();
                harness.run_steps(8);
                take(&mut harness, &folder, &format!("pairs-{count}-{tag}"));
            }
        }
    }
}

//! The exactness ledger: what is on show, what was given away, and why it can be trusted.

use bayescope::flow::Precision;
use bayescope::oracle::folder;
use bayescope::provenance::{Badge, Made, Provenance};
use bayescope::validate::ComparePrecision;
use bayescope::worker::protocol::{Event, Outcome};
use burn::tensor::Device;
use egui_kittest::kittest::Queryable;

use super::experiments::click;
use super::{by_palette, full, shows, tasks};

#[test]
fn precision_is_compared_on_a_page_of_its_own() {
    let (mut harness, fake) = full();
    by_palette(&mut harness, "precision");
    assert!(shows(&harness, "Not compared yet"));
    click(&mut harness, "Copy comparison as command");
    let command = "bayescope oracle precision mnist --images 256 --tau 1";
    assert!(harness.state().session().log.iter().any(|entry| entry.text.contains(command)));
    click(&mut harness, "Compare 256 images");
    let (id, task) = tasks::asked::<ComparePrecision>(&fake);
    assert_eq!(task.images, 256);
    assert!(shows(&harness, "On its way") && !shows(&harness, "Not compared yet"));
    let oracle = folder::open("mnist", &Device::flex(), Precision::F32, 16).unwrap();
    let few = ComparePrecision { images: 8, ..task };
    tasks::done::<ComparePrecision>(&fake, id, tasks::carry_out(&few, Some(("mnist", &oracle))));
    harness.run_steps(6);
    for text in ["log-likelihood log p(x|y)", "Bayes decisions changed", "Error of the posterior over the margin"] {
        assert!(shows(&harness, text), "'{text}' is not shown: {:?}", super::labels(&harness));
    }
    assert!(!shows(&harness, "On its way"));
    harness.check_accessibility();
    // What fails next is said above what was found before.
    click(&mut harness, "Compare 256 images");
    let (id, _) = fake.jobs().pop().unwrap();
    fake.send(Event::JobEnded { id, outcome: Outcome::Failed("too little memory for 64 bits".into()) });
    harness.run_steps(4);
    harness.get_by_label("Clear finished").click();
    harness.run_steps(4);
    assert!(shows(&harness, "too little memory for 64 bits") && shows(&harness, "Bayes decisions changed"));
}

#[test]
fn everything_on_show_and_given_away_has_its_badge_and_chain() {
    let (mut harness, fake) = full();
    by_palette(&mut harness, "exactness");
    for text in
        ["Posteriors of the gallery and the inspector", "weights SHA-256", "Pictures of the gallery", "Nothing yet"]
    {
        assert!(shows(&harness, text), "'{text}' is not shown: {:?}", super::labels(&harness));
    }
    let provenance = Provenance::new(Badge::Illustrative).with("oracle", "mnist").with("τ", "1.25");
    let made =
        |what: &str| Made { what: what.into(), place: Some("/out/a.png".into()), provenance: provenance.clone() };
    fake.send(Event::Made(Box::new(made("samples"))));
    fake.send(Event::Made(Box::new(made("samples"))));
    fake.send(Event::Made(Box::new(made("points of a walk"))));
    harness.run_steps(4);
    assert!(shows(&harness, "samples: /out/a.png") && shows(&harness, "points of a walk: /out/a.png"));
    assert_eq!(harness.state().session().ledger.iter().len(), 2, "a file written again has one line");
    for tau in ["1", "1.5"] {
        let provenance = Provenance::new(Badge::Exact).with("τ", tau);
        fake.send(Event::Made(Box::new(Made { what: "posterior of a.png".into(), place: None, provenance })));
    }
    harness.run_steps(4);
    let last = harness.state().session().ledger.iter().next_back().unwrap();
    assert!(last.provenance.chain.contains(&("τ".into(), "1.5".into())), "{last:?}");
    assert_eq!(harness.state().session().ledger.iter().len(), 3, "a posterior at other knobs has one line");
    click(&mut harness, "Copy ledger");
    let copied = harness.state().session().log.iter().any(|entry| entry.text == "Copied");
    assert!(copied, "the page is on the clipboard");
    harness.get_by_label("samples: /out/a.png").scroll_to_me();
    harness.run_steps(2);
    click(&mut harness, "samples: /out/a.png");
    harness.run_steps(10);
    assert!(shows(&harness, "1.25"), "{:?}", super::labels(&harness));
    harness.check_accessibility();
}

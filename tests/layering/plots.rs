//! One mechanism for all plots of the window.

use super::{code, mentions, sources};

/// A plot of the window is a `Figure` shown by a `Board`: it has zoom, legend, pointer, table and files from there. Nobody else lays
/// figures out, and who makes one shows it.
#[test]
fn every_plot_of_the_window_is_drawn_by_the_one_mechanism() {
    const LAYING_OUT: &[&str] = &["scene(", "svg(", "png(", "pdf(", "RenderOptions"];
    let mechanism = |file: &str| file.starts_with("src/gui/plot/");
    // Files are written there, from the same figures.
    let files = ["src/gui/save_figure.rs", "src/gui/prefs/on_paper.rs"];
    let (mut broken, mut figures, mut boards, mut plots) = (Vec::new(), 0, 0, Vec::new());
    for (file, text) in sources() {
        plots.extend(code(&text).filter(|(_, code)| code.contains("Plot::new(")).map(|_| file.clone()));
        if !file.starts_with("src/gui/")
            || mechanism(&file)
            || files.contains(&file.as_str())
            || file.ends_with("tests.rs")
        {
            continue;
        }
        let before_tests = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let (mut makes, mut shows) = (false, false);
        for (line, code) in code(before_tests) {
            let laid =
                LAYING_OUT.iter().find(|word| mentions(code, word.trim_end_matches('(')) && code.contains(**word));
            broken.extend(laid.map(|word| format!("{file}:{line}: {word} beside src/gui/plot/")));
            makes |= code.trim_end().ends_with(" Figure {");
            // Bars that are shown in their own way have the same buttons.
            shows |= ["About {", "About::default()", "plot::buttons("].iter().any(|word| code.contains(word));
        }
        figures += usize::from(makes);
        boards += usize::from(shows);
        if makes && !shows {
            broken.push(format!("{file}: makes a figure and does not show it by a Board"));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert_eq!(plots, ["src/gui/plot/mod.rs"], "one place makes plots");
    assert!(
        figures >= 6 && boards > figures,
        "{figures} files make figures, {boards} show some: the scan no longer sees them"
    );
}

//! Words that belong to some places alone.

use super::{code, mentions, sources};

/// Word → the only places that may use it, with the reason for every exception.
const WORDS: &[(&[&str], &[&str])] = &[
    (&["egui", "eframe", "egui_tiles", "egui_notify", "rfd"], &["src/gui/"]),
    // Every plot is a figure, and drawn by the one mechanism of the window.
    (&["egui_plot"], &["src/gui/plot/"]),
    (&["wgpu::", "cubecl"], &["src/device/", "src/gui/"]),
    (&["burn::remote", "burn::server"], &["src/device/"]),
    // Each call compiles thousands of lines. Beside inner loops, work is shared out by `parallel`, which compiles them once.
    (
        &["rayon::prelude", "rayon::iter", "rayon::slice", "rayon::{"],
        &["src/parallel.rs", "src/kernels/", "src/flow/", "src/gradients/", "src/classifier/", "src/oracle/bench.rs"],
    ),
    (
        &["crossbeam_channel", "mpsc", "thread::scope", "thread::Builder"],
        &[
            "src/worker/",
            // The network waits on a thread of its own, so that a stop is heard at once.
            "src/data/fetch/",
            // A batch's pieces run side by side: burn's graph may not be shared with the pool its kernels use.
            "src/gradients/mod.rs",
            // A case that hangs is left behind on its thread.
            "src/verify/isolate.rs",
            // Each of several devices is driven by a thread of its own.
            "src/device/scheduler.rs",
            // Each client of `serve` has a thread that passes its bytes on.
            "src/device/lend",
            // The desktop's file dialog and the listing of adapters wait for people and drivers.
            "src/gui/background.rs",
        ],
    ),
];

#[test]
fn words_stay_where_they_belong() {
    let mut broken = Vec::new();
    for (file, text) in sources() {
        for (words, places) in WORDS {
            if places.iter().any(|place| file.starts_with(place)) {
                continue;
            }
            for (line, code) in code(&text) {
                let used = words.iter().find(|word| mentions(code, word));
                broken.extend(used.map(|word| format!("{file}:{line}: names {word}")));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

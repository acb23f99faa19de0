//! NumPy and this crate read each other's archives. Skipped where there is no `python3` with NumPy.

use std::path::Path;
use std::process::Command;

use bayescope::data::*;

use crate::common::tiny;
use crate::files::*;

/// What a script prints, run in a folder; `None` (and a line that says so) where NumPy is missing.
fn python(folder: &Path, script: &str) -> Option<String> {
    let run = |script: &str| Command::new("python3").arg("-c").arg(script).current_dir(folder).output();
    if !run("import numpy").is_ok_and(|out| out.status.success()) {
        println!("skipped: no python3 with numpy");
        return None;
    }
    let out = run(script).unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(String::from_utf8_lossy(&out.stdout).into_owned())
}

#[test]
fn data_numpy_reads_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    write_npz(&folder.path().join("a.npz"), &tiny::labelled()).unwrap();
    let script = "
import numpy as np
a = np.load('a.npz')
print({k: (str(a[k].dtype), a[k].shape) for k in a.files})
print([a[k].ravel().tolist() for k in ('x', 'logp', 'y')])";
    if let Some(out) = python(folder.path(), script) {
        let facts = "{'x': ('float32', (2, 1, 2, 2)), 'y': ('int64', (2,)), 'posterior': ('float32', (2, 3)), \
                     'logp': ('float64', (2, 3)), 'aleatoric': ('float64', (2,))}";
        assert!(out.starts_with(facts), "{out}");
        assert!(out.contains("[-inf, -100000.0, -2.5, 0.1, 0.2, 0.3], [2, 0]]"), "{out}");
    }
}

#[test]
fn data_numpy_archives_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
import numpy as np
x = np.arange(24, dtype='f4').reshape(2, 1, 3, 4) / 8
p = np.array([[.25, .75], [1, 0]], 'f4')
y = np.array([1, 0])
np.savez('plain.npz', x=x, y=y, posterior=p)
np.savez_compressed('packed.npz', x=x, y=y, posterior=p)
np.savez('odd.npz', x=np.asfortranarray(x.astype('>f8')), y=y.astype('>u2'), posterior=np.asfortranarray(p.astype('f8')))
u = (np.arange(36) * 7 % 256).astype('u1').reshape(2, 2, 3, 3)
np.savez_compressed('pixels.npz', images=u, labels=y.astype(bool))";
    if python(folder.path(), script).is_none() {
        return;
    }
    for name in ["plain.npz", "packed.npz", "odd.npz"] {
        let Input::World(batch) = read_npz(&folder.path().join(name)).unwrap() else {
            panic!("{name} is read as pixels");
        };
        let expected: Vec<f32> = (0..24).map(|i| i as f32 / 8.0).collect();
        assert_eq!((batch.x, batch.shape.to_string()), (expected, "1×3×4".to_owned()), "{name}");
        assert_eq!((batch.y, batch.posterior), (Some(vec![1, 0]), Some(vec![0.25, 0.75, 1.0, 0.0])), "{name}");
    }
    let images = pixels(&folder.path().join("pixels.npz"));
    assert_eq!((images.shape.to_string(), &images.labels), ("3×2×3".to_owned(), &Some(vec![1, 0])));
    // Channel 1 of image 0: elements 1, 4, 7, … of the interleaved values.
    assert_eq!(images.image(0)[6..12], [7, 28, 49, 70, 91, 112]);
}

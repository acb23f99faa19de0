"""A world beside real images is what the command says."""

import json
import struct
import subprocess
import sys

import numpy as np
import pytest

import bayescope


@pytest.fixture
def digits(tmp_path):
    """A folder like MNIST's: bright bars, with labels."""
    folder, random = tmp_path / "digits", np.random.default_rng(0)
    folder.mkdir()

    def write(name, values):
        head = struct.pack(">HBB", 0, 8, values.ndim) + struct.pack(f">{values.ndim}I", *values.shape)
        (folder / name).write_bytes(head + values.tobytes())

    for part, n in [("train", 20), ("t10k", 12)]:
        x = np.zeros((n, 28, 28), dtype=np.uint8)
        x[:, 4:24, 12:16] = random.integers(128, 256, (n, 20, 4))
        write(f"{part}-images-idx3-ubyte", x)
        write(f"{part}-labels-idx1-ubyte", (np.arange(n) % 10).astype(np.uint8))
    return folder


def test_a_validation_is_that_of_the_command(digits, tmp_path):
    asked = [sys.executable, "-m", "bayescope", "oracle", "validate", "mnist", "--data", str(digits), "--tau", "1.15"]
    done = subprocess.run([*asked, "--seed", "3", "--device", "cpu", "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    world, report = bayescope.World("mnist", tau=1.15, device="cpu"), tmp_path / "report"
    found = world.validate(digits, seed=3, report=report)
    assert found == json.loads(done.stdout) == json.loads((report / "validation.json").read_text())
    assert found["images"] == 12 and found["fidelity"] is None


def test_what_cannot_be_validated_is_named(digits):
    world = bayescope.World("mnist", device="cpu")
    refused = [
        (OSError, "no such folder", lambda: world.validate(digits / "no such folder")),
        (ValueError, "^images=-1: ", lambda: world.validate(digits, images=-1)),
        (TypeError, "^threshold='near': ", lambda: world.validate(digits, threshold="near")),
    ]
    for error, words, ask in refused:
        with pytest.raises(error, match=words):
            ask()

"""Arrays are judged as the files of the command are."""

import json
import subprocess
import sys

import numpy as np

import bayescope


def command(*args):
    done = subprocess.run([sys.executable, "-m", "bayescope", *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_figures_are_those_of_the_command(tmp_path):
    dataset, file = tmp_path / "digits", tmp_path / "model.npy"
    command("export", "mnist", "--train", 8, "--test", 60, "--tau", 1.15, "--out", dataset, "--device", "cpu")
    np.save(file, np.random.default_rng(0).normal(size=(60, 10)))
    told = json.loads(command("evaluate", dataset, "--predictions", file, "--kind", "logits", "--json"))
    assert bayescope.evaluate(file, dataset, kind="logits") == told
    [named] = bayescope.evaluate({"model": np.load(file)}, dataset, kind="logits")
    places = [key for key in told if told[key] != named.get(key)]
    # What is told of the file itself may differ, no figure.
    assert not any(isinstance(told[key], (int, float)) for key in places), places

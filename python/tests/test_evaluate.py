"""Arrays are judged as the files of the command are."""

import json
import subprocess
import sys

import numpy as np
import pytest

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


def test_what_cannot_be_judged_is_named_as_it_was_given(tmp_path):
    dataset = tmp_path / "digits"
    command("export", "mnist", "--train", 0, "--test", 20, "--out", dataset, "--device", "cpu")
    with pytest.raises(ValueError, match="^short: ") as error:
        bayescope.evaluate({"short": np.zeros((9, 10))}, dataset, kind="logits")
    assert ".npy" not in str(error.value)
    with pytest.raises(ValueError, match="list of paths"):
        bayescope.evaluate(["a.npy", "b.npy"], dataset)
    with pytest.raises(ValueError, match="are numbers"):
        bayescope.evaluate(np.array([["a", "b"]]), dataset)


def test_a_report_is_not_written_over_unasked(tmp_path):
    dataset, report = tmp_path / "digits", tmp_path / "report"
    command("export", "mnist", "--train", 0, "--test", 20, "--out", dataset, "--device", "cpu")
    report.mkdir()

    def evaluate(**more):
        bayescope.evaluate(np.zeros((20, 10)), dataset, kind="logits", report=report, **more)

    evaluate()
    page = report / "report.md"
    page.write_text("mine")
    with pytest.raises(ValueError, match="not empty.*force=True"):
        evaluate()
    assert page.read_text() == "mine"
    evaluate(force=True)
    assert page.read_text() != "mine"


def test_tensors_are_judged_as_arrays(tmp_path):
    torch = pytest.importorskip("torch")
    dataset = tmp_path / "digits"
    command("export", "mnist", "--train", 0, "--test", 20, "--out", dataset, "--device", "cpu")
    logits = torch.zeros((20, 10), requires_grad=True)
    judged = [bayescope.evaluate(given, dataset, kind="logits") for given in (logits, logits.detach().numpy(), logits.bfloat16())]
    assert len({one["epistemic"] for one in judged}) == 1

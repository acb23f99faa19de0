"""External runs from Python: NumPy recomputes their figures from what was logged."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import bayescope


@pytest.fixture(scope="module")
def world():
    return bayescope.World("mnist", tau=1.15, device="cpu")


def test_figures_follow_from_the_logged_numbers(world, tmp_path):
    run = bayescope.Run(tmp_path / "run", world, test=40)
    logits = np.random.default_rng(0).normal(size=(40, len(world.classes))).astype(np.float32)
    run.log(10, logits, epoch=0.5, train_loss=float("nan"))
    p = np.load(tmp_path / "run/test/posterior.npy")
    log_q = logits.astype(np.float64)
    log_q -= np.log(np.exp(log_q - log_q.max(1, keepdims=True)).sum(1, keepdims=True)) + log_q.max(1, keepdims=True)
    [step] = run.summary()["steps"]
    assert step["cross_entropy"]["value"] == pytest.approx(-(p * log_q).sum(1).mean(), abs=1e-9)
    assert step["bayes_error"]["value"] == pytest.approx(1 - p.max(1).mean(), abs=1e-9)
    assert step["train_loss"] is None and step["epoch"] == 0.5


def test_a_run_goes_on_and_another_is_refused(world, tmp_path):
    folder = tmp_path / "run"
    first = bayescope.Run(folder, world, test=10)
    assert first.last_step is None and first.test_images.shape == (10, *world.shape)
    first.log(3, np.zeros((10, len(world.classes))))
    assert bayescope.Run(folder, world, test=10).last_step == 3
    with pytest.raises(ValueError, match="test images"):
        bayescope.Run(folder, world, test=11)
    with pytest.raises(ValueError, match="holds logits, not probs"):
        first.log(4, probs=np.full((10, len(world.classes)), 1 / len(world.classes)))
    with pytest.raises(ValueError, match="those of the test images are"):
        first.log(4, np.zeros((9, len(world.classes))))
    with pytest.raises(ValueError, match=r"predictions are \[10\]; those of the test images are \[10, "):
        first.log(4, np.zeros(10))
    with pytest.raises(ValueError, match="^step=-1:"):
        first.log(-1, np.zeros((10, len(world.classes))))


def test_what_a_summary_would_refuse_is_not_written(world, tmp_path):
    run, k = bayescope.Run(tmp_path / "run", world, test=10), len(world.classes)
    shares = bayescope.Run(tmp_path / "shares", world, test=10, predictions="probs")

    def logits(value, place=(2, 3), dtype=np.float64):
        values = np.random.default_rng(0).normal(size=(10, k)).astype(dtype)
        values[place] = value
        return values

    fine = logits(0.0)
    refused = [
        (ValueError, "^image 2: class 3 is NaN", lambda: run.log(1, logits(np.nan))),
        (ValueError, "^image 2: class 3 is inf", lambda: run.log(1, logits(np.inf))),
        (ValueError, "^image 2: every class is −∞", lambda: run.log(1, logits(-np.inf, place=2))),
        (ValueError, "^these look like probabilities", lambda: run.log(1, np.full((10, k), 1 / k))),
        (ValueError, "add up to 2.0+, not to 1", lambda: shares.log(1, probs=np.full((10, k), 2 / k))),
        (ValueError, "^logits: -1e\\+39 is no float32", lambda: run.log(1, logits(-1e39))),
        (ValueError, "^logits: .*not complex128", lambda: run.log(1, logits(1j, dtype=np.complex128))),
        (TypeError, "^step=1.5: ", lambda: run.log(1.5, fine)),
        (TypeError, "^images=2.5: ", lambda: run.log(1, fine, images=2.5)),
        (TypeError, "^seconds='soon': ", lambda: run.log(1, fine, seconds="soon")),
        (TypeError, "^train_loss=array", lambda: run.log(1, fine, train_loss=np.zeros(2))),
    ]
    for error, words, log in refused:
        with pytest.raises(error, match=words):
            log()
    assert not [*(tmp_path / "run/predictions").iterdir(), *(tmp_path / "shares/predictions").iterdir()]
    run.log(1, logits(-np.inf), train_loss=np.float32(0.5))
    [step] = run.summary()["steps"]
    assert step["zeros"] == 1 and step["train_loss"] == 0.5


def test_the_worst_images_are_those_of_the_command(world, tmp_path):
    run = bayescope.Run(tmp_path / "run", world, test=20)
    for step in (1, 2):
        run.log(step, np.random.default_rng(step).normal(size=(20, len(world.classes))))
    asked = [sys.executable, "-m", "bayescope", "external", "worst", str(tmp_path / "run"), "--json", "--count", "3"]
    for step, more in [(1, ["--step", "1"]), (None, [])]:
        done = subprocess.run(asked + more, capture_output=True, text=True, check=True)
        assert run.worst(step, 3) == json.loads(done.stdout)


def test_a_run_that_goes_on_keeps_its_time_and_is_not_finished(world, tmp_path):
    logits = np.zeros((10, len(world.classes)))

    def log(steps, **facts):
        run = bayescope.Run(tmp_path / "run", world, test=10)
        for step in steps:
            run.log(step, logits, **facts)
        return run

    def seconds():
        return [step["seconds"] for step in run.summary()["steps"]]

    run = log([1], seconds=100.0)
    log([2], seconds=5000.0)
    run.finish()
    assert run.summary()["finished"]
    # From step 1: what was logged behind it is logged again.
    log([2, 3])
    assert not run.summary()["finished"]
    assert seconds()[0] == 100 and 100 <= seconds()[1] <= seconds()[2] < 1000
    # From the beginning.
    log([1])
    assert seconds()[0] < 100


def test_the_number_of_training_images_is_kept(world, tmp_path):
    run = bayescope.Run(tmp_path / "run", world, test=10, train_images=500)
    assert run.summary()["spec"]["external"]["train_images"] == 500
    assert "train_images = 500" in (tmp_path / "run/run.toml").read_text()
    with pytest.raises(ValueError, match="another number of training images"):
        bayescope.Run(tmp_path / "run", world, test=10)
    bayescope.Run(tmp_path / "stream", world, test=10)
    assert "train_images" not in (tmp_path / "stream/run.toml").read_text()


def test_a_killed_script_goes_on_at_its_checkpoint_to_the_same_bits(tmp_path):
    script = (Path(__file__).parents[2] / "docs/examples/numpy_live.py").read_text().replace("< 2000", "< 100")
    whole, killed = tmp_path / "whole", tmp_path / "killed"

    def start(folder):
        folder.mkdir(exist_ok=True)
        return subprocess.Popen([sys.executable, "-c", script], cwd=folder)

    def figures(folder):
        steps = bayescope.Run(folder / "myrun", bayescope.World("mnist", target="5%")).summary()["steps"]
        return [(step["step"], step["cross_entropy"], step["train_loss"]) for step in steps]

    assert start(whole).wait(300) == 0
    process = start(killed)
    while not (killed / "myrun/checkpoint.npz").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert not (killed / "myrun/predictions/000000100.pred").exists(), "killed on its way"
    assert start(killed).wait(300) == 0
    kept = [np.load(folder / "myrun/checkpoint.npz")["w"] for folder in (whole, killed)]
    assert np.array_equal(*kept) and figures(whole) == figures(killed)

"""Classes against each other, over τ and place by place: the figures of the commands, and those that follow from draws."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import bayescope

# Its map depends on the class: it is sampled.
ANIMALS = str(pathlib.Path(__file__).parents[2] / "tests/worlds/animals")


def told(*args):
    done = subprocess.run([sys.executable, "-m", "bayescope", *map(str, args), "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def world():
    return bayescope.World("mnist", tau=1.15, device="cpu")


@pytest.fixture(scope="module")
def animals():
    return bayescope.World(ANIMALS, device="cpu")


def agree(found, report, arrays):
    for key in found.keys() - arrays:
        assert found[key] == report[key], key
    for key in arrays:
        assert found[key].dtype == np.float64
        # None is NaN of float64; an interval that is missing has two of them.
        places = [[[np.nan] * 2 if pair is None and "interval" in key else pair for pair in row] for row in report[key]]
        assert np.array_equal(found[key], np.array(places, dtype=np.float64), equal_nan=True), key


def test_hardness_is_that_of_the_command(world):
    found = world.hardness(tolerance=0.01)
    assert {"one_vs_rest", "pairwise", "over_tau", "agreement"} <= found.keys() and "pairwise_intervals" not in found
    agree(found, told("hardness", "mnist", "--tau", 1.15, "--tolerance", 0.01), {"pairwise"})


def test_hardness_of_a_sampled_world_is_that_of_the_command(animals):
    found = animals.hardness(samples=32, seed=3)
    assert found["ended"] == "samples" and np.isnan(found["pairwise_intervals"][0, 0]).all()
    report = told("hardness", ANIMALS, "--samples", 32, "--seed", 3, "--device", "cpu")
    agree(found, report, {"pairwise", "pairwise_intervals"})


def test_the_error_of_a_pair_is_that_of_its_draws():
    world = bayescope.World("mnist", tau=2.0, device="cpu")
    pairwise = world.hardness(tolerance=0.05)["pairwise"]
    assert np.array_equal(pairwise, pairwise.T) and not pairwise.diagonal().any()
    i, j = np.unravel_index(pairwise.argmax(), pairwise.shape)
    logp = np.concatenate([world.sample(1000, seed=3, classes=k).logp for k in (i, j)])
    doubt = 1 / (1 + np.exp(np.abs(logp[:, i] - logp[:, j])))
    assert abs(doubt.mean() - pairwise[i, j]) < 5 * doubt.std() / np.sqrt(len(doubt))


def test_a_curve_is_that_of_the_command(world):
    points = told("bayes-error", "mnist", "--curve", "0.9:1.3:3", "--tolerance", 0.01)["curve"]
    found = world.curve([point["tau"] for point in points], tolerance=0.01)
    assert found.keys() == points[0].keys()
    assert found["method"].tolist() == [point["method"] for point in points]
    for name in ("bayes_error", "aleatoric_nats", "slope"):
        for part in ("value", "interval"):
            assert found[name][part].tolist() == [point[name][part] for point in points], (name, part)
    error = found["bayes_error"]["value"]
    assert (np.diff(error) > 0).all()


def test_a_curve_of_a_sampled_world_is_that_of_the_command(animals):
    report = told("bayes-error", ANIMALS, "--curve", "0.8:1.2:3", "--samples", 32, "--device", "cpu")
    points = report["curve"]
    found = animals.curve([point["tau"] for point in points], samples=32)
    assert (found["method"], found["ended"]) == (report["method"], report["ended"])
    assert found["samples"].tolist() == [32] * 3
    rise = found["slope_from_last"]["interval"]
    assert np.isnan(rise[0]).all() and rise[1:].tolist() == [point["slope_from_last"]["interval"] for point in points[1:]]
    assert "slope_from_last" not in animals.curve([1.0], samples=32)


def test_temperatures_of_a_curve_rise(world):
    for taus in ([], [1.0, 1.0], [1.2, 1.0], [np.nan, 1.0], [0.0, 1.0], ["1"], 1.0):
        with pytest.raises(ValueError, match="τ|^taus: "):
            world.curve(taus, tolerance=0.05)
    with pytest.raises(ValueError, match="τ"):
        bayescope.World("mnist", tau=0.0, device="cpu").hardness()


def test_ctrl_c_ends_a_curve_and_the_world_lives_on(world):
    # A shell has what it puts into the background ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    begun = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        world.curve(np.linspace(0.9, 1.3, 100_000))
    assert world.sample(2, seed=1).y.shape == (2,)
    assert time.monotonic() - begun < 60


def test_maps_of_evidence_are_those_of_the_command_and_add_up_to_the_difference_of_densities(world, tmp_path):
    x, file = world.sample(3, seed=7).x, tmp_path / "images.npz"
    np.savez(file, x=x)
    asked = ["--for", 3, "--against", 5, "--tau", 1.15, "--device", "cpu"]
    images = told("evidence", "mnist", file, *asked)["images"]
    found = world.evidence(x, world.classes[3], 5)
    assert found.cells.shape == (3, *world.shape[1:])
    for name in ("cells", "sum", "total"):
        assert getattr(found, name).tolist() == [image[name] for image in images], name
    logp = world.scores(x).logp
    assert np.allclose(found.total, logp[:, 3] - logp[:, 5], rtol=0, atol=1e-4)
    assert np.allclose(found.cells.sum((1, 2)), found.total, rtol=1e-6, atol=1e-6)
    assert (found.for_ == 3).all() and (found.against == 5).all()


def test_evidence_is_by_itself_between_the_two_likeliest_classes_whatever_the_prior(world):
    x = world.sample(8, seed=7).x
    order = np.argsort(world.scores(x).logp)[:, ::-1]
    knobs = {"prior": [1e6] + 9 * [1.0], "smoothing": 2.0, "label_noise": "pair:0.9"}
    for other in (world, bayescope.World("mnist", tau=1.15, device="cpu", **knobs)):
        found = other.evidence(x)
        assert np.array_equal(found.for_, order[:, 0]) and np.array_equal(found.against, order[:, 1])
        assert (found.total > 0).all()


def test_evidence_is_between_two_classes(world):
    x, points = world.sample(1, seed=7).x, bayescope.World("mnist", tau=0.0, device="cpu")
    refused = [
        ("give both", lambda: world.evidence(x, 3)),
        ("are both", lambda: world.evidence(x, 3, "3")),
        ("^for_=10: ", lambda: world.evidence(x, 10, 3)),
        ("^against=no such class: ", lambda: world.evidence(x, 3, "no such class")),
        ("are 1×2×2", lambda: world.evidence(np.zeros((1, 1, 2, 2), dtype=np.float32), 3, 5)),
        ("at τ = 0", lambda: points.evidence(x, 3, 5)),
    ]
    for words, ask in refused:
        with pytest.raises(ValueError, match=words):
            ask()

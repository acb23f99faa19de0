"""Walks are those of the command, and their middle is where two classes are equally probable."""

import json
import subprocess
import sys

import numpy as np
import pytest

import bayescope


@pytest.fixture(scope="module")
def world():
    return bayescope.World("mnist", tau=1.15, device="cpu")


def test_a_walk_towards_a_class_is_that_of_the_command(world, tmp_path):
    decision, file = int(world.sample(1, seed=7).posterior.argmax()), tmp_path / "walk.npz"
    target = world.classes[(decision + 1) % len(world.classes)]
    asked = ["--from", "sample:0", "--to", f"class:{target}", "--steps", 8, "--tau", 1.15, "--seed", 7, "--device", "cpu"]
    asked = [sys.executable, "-m", "bayescope", "walk", "mnist", *map(str, asked), "--out", str(file), "--json"]
    done = subprocess.run(asked, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told, saved, found = json.loads(done.stdout), np.load(file), world.walk(0, target, steps=8, seed=7)
    assert np.array_equal(np.concatenate([found.x, found.boundary["x"][None]]), saved["x"])
    names = ["position", "posterior", "log_likelihood", "entropy_nats", "log_px"]
    for name, array in zip(names, [found.position, found.posterior, found.logp, found.aleatoric, found.log_px]):
        assert array.tolist() == [point[name] for point in told["points"]], name
    assert {name: value for name, value in found.boundary.items() if name != "x"} == told["boundary"]
    assert [found.way, found.start, found.target] == [told["way"], decision, told["target"]]


def test_the_middle_of_a_walk_between_images_is_as_probable_in_both_classes(world):
    drawn = world.sample(2, seed=7, classes=[3, 5])
    found = world.walk(drawn.x[0], drawn.x[1], steps=4)
    assert np.array_equal(found.x[[0, -1]], drawn.x) and found.x.shape == (5, *world.shape)
    assert found.boundary["reached"] and found.start != found.target
    p = world.posterior(found.boundary["x"][None])[0, [found.start, found.target]]
    # The walk stops at a tenth of a per cent; another batch may round otherwise.
    assert abs(p[0] - p[1]) < 2e-3 * p.sum()


def test_samples_are_ends_by_their_numbers(world):
    x = world.sample(3, seed=7, classes=4).x
    numbers, images = world.walk(2, 1, steps=3, seed=7, classes="4"), world.walk(x[2], x[1], steps=3)
    assert np.allclose(numbers.x, images.x, rtol=0, atol=1e-5)
    assert np.array_equal(numbers.x[[0, -1]], x[[2, 1]])


def test_what_is_no_end_of_a_walk_is_refused(world):
    x = world.sample(1, seed=7).x
    refused = [
        ("^from_: floats", lambda: world.walk(x, 1)),
        ("^from_: floats", lambda: world.walk("3", 1)),
        ("^to: floats", lambda: world.walk(0, None)),
        ("^to=no such class: ", lambda: world.walk(0, "no such class")),
        ("^from_=-1: ", lambda: world.walk(-1, 0)),
        ("steps, not 0", lambda: world.walk(0, 1, steps=0)),
        ("label noise", lambda: bayescope.World("mnist", label_noise="pair:0.1", device="cpu").walk(0, 1)),
    ]
    for words, ask in refused:
        with pytest.raises(ValueError, match=words):
            ask()

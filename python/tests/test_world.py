"""The package gives the bits of the command line, and goes on where it was stopped."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import bayescope

ARGUMENTS = ["--device", "cpu"]


def command(*args):
    return subprocess.run([sys.executable, "-m", "bayescope", *map(str, args)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def world():
    return bayescope.World("mnist", tau=1.15, device="cpu")


def test_samples_and_posteriors_are_those_of_the_command(world, tmp_path):
    file = tmp_path / "drawn.npz"
    done = command("sample", "mnist", "--n", 20, "--seed", 7, "--tau", 1.15, "--out", file, *ARGUMENTS)
    assert done.returncode == 0, done.stderr
    drawn, told = world.sample(20, seed=7), np.load(file)
    for name in ["x", "y", "logp", "aleatoric"]:
        assert np.array_equal(getattr(drawn, name), told[name]), name
    assert np.array_equal(drawn.posterior.astype(np.float32), told["posterior"])
    done = command("posterior", "mnist", file, "--tau", 1.15, "--json", *ARGUMENTS)
    assert done.returncode == 0, done.stderr
    images = json.loads(done.stdout)["images"]
    assert np.array_equal(world.posterior(drawn.x), [image["posterior"] for image in images])
    assert np.array_equal(world.log_prob(drawn.x), [image["log_px"] for image in images])


def test_the_bayes_error_and_its_tau_are_those_of_the_command(world):
    told = json.loads(command("bayes-error", "mnist", "--tau", 1.15, "--json").stdout)
    found = world.bayes_error()
    assert (found["value"], found["interval"]) == (told["value"], told["interval"])
    told = json.loads(command("tau", "mnist", "--target", "0.05", "--json").stdout)
    assert world.tau("5%")["value"] == world.tau_of(0.05)["value"] == told["tau"]
    assert bayescope.World("mnist", target="5%", device="cpu").tau == told["tau"]


def test_label_noise_mixes_posteriors_and_leaves_images(world):
    flips = np.full((10, 10), 0.02) + 0.8 * np.eye(10)
    noisy = bayescope.World("mnist", tau=1.15, label_noise=flips, device="cpu")
    clean, drawn = world.sample(40, seed=7), noisy.sample(40, seed=7)
    assert np.array_equal(clean.x, drawn.x) and np.array_equal(clean.logp, drawn.logp)
    assert np.allclose(drawn.posterior, clean.posterior @ flips, rtol=0, atol=1e-14)
    words = bayescope.World("mnist", tau=1.15, label_noise="symmetric:0.18", device="cpu")
    error = words.bayes_error()["value"]
    assert abs(error - (0.18 + 0.8 * world.bayes_error()["value"])) < 1e-12
    told = json.loads(command("bayes-error", "mnist", "--tau", 1.15, "--label-noise", "symmetric:0.18", "--json").stdout)
    assert told["value"] == error
    with pytest.raises(ValueError, match="adds up to"):
        bayescope.World("mnist", label_noise=flips[:, ::-1] * 0.5, device="cpu")
    state = world.stream(3).state_dict()
    with pytest.raises(ValueError, match="label_noise"):
        words.stream(3).load_state_dict(state)


def test_a_stream_is_the_seeds_samples_and_goes_on_at_its_batch(world):
    stream, whole = world.stream(3, seed=4), world.sample(15, seed=4)
    batches = [next(stream) for _ in range(2)]
    resumed = world.stream(3, seed=4)
    resumed.load_state_dict(json.loads(json.dumps(stream.state_dict())))
    batches += [next(resumed) for _ in range(3)]
    for i, name in enumerate(whole._fields):
        assert np.array_equal(np.concatenate([batch[i] for batch in batches]), whole[i]), name
    with pytest.raises(ValueError, match="seed"):
        world.stream(3, seed=5).load_state_dict(stream.state_dict())


def test_classes_are_given_by_name_number_or_image(world):
    each = world.sample(4, seed=1, classes=[3, 1, 3, 0])
    assert each.y.tolist() == [3, 1, 3, 0]
    one = world.sample(4, seed=1, classes=world.classes[3])
    assert np.array_equal(each.x[[0, 2]], one.x[[0, 2]])
    assert np.array_equal(world.sample(4, seed=1, classes=3).x, one.x)
    for unknown in ["no such class", -1, len(world.classes)]:
        with pytest.raises(ValueError, match="this world's classes are"):
            world.sample(4, classes=unknown)


@pytest.mark.parametrize("args", [{"tau": -1.0}, {"prior": [1.0, 2.0]}, {"device": "gpu"}])
def test_what_cannot_be_used_is_a_value_error(args):
    with pytest.raises(ValueError):
        bayescope.World("mnist", **{"device": "cpu", **args})


def test_an_error_has_the_message_of_the_command():
    done = command("sample", "no such world", "--out", "x.npz", *ARGUMENTS)
    with pytest.raises((ValueError, OSError)) as error:
        bayescope.World("no such world", device="cpu")
    assert str(error.value) in done.stderr


def test_ctrl_c_ends_a_long_computation_and_the_world_lives_on(world):
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    begun = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        world.sample(10_000_000, seed=1)
    assert time.monotonic() - begun < 30
    assert world.sample(2, seed=1).y.shape == (2,)

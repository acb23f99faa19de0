"""The package gives the bits of the command line, and goes on where it was stopped."""

import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import threading
import time
from importlib import metadata

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


def test_slope_and_information_are_those_of_the_command(world):
    told = json.loads(command("bayes-error", "mnist", "--tau", 1.15, "--information", "--json").stdout)
    found = world.bayes_error(information=True)
    assert [found[key] for key in ("value", "slope", "information")] == [told[key] for key in ("value", "slope", "information")]
    assert "information" not in world.bayes_error()


def test_a_target_is_met_as_external_start_meets_it(tmp_path):
    asked = ["external", "start", "mnist", "--target", "5%", "--test", 2, "--out", tmp_path / "run", "--json", *ARGUMENTS]
    done = command(*asked)
    assert done.returncode == 0, done.stderr
    world = bayescope.World("mnist", target="5%", device="cpu")
    assert world.tau == json.loads(done.stdout)["world"]["tau"]
    # The same run.
    assert bayescope.Run(tmp_path / "run", world, test=2).last_step is None


def test_typicality_is_that_of_the_command(world, tmp_path):
    file, noise = tmp_path / "images.npz", np.random.default_rng(0).normal(size=(2, *world.shape))
    x = np.concatenate([world.sample(20, seed=7).x, 3 * noise.astype(np.float32)])
    np.savez(file, x=x)
    done = command("posterior", "mnist", file, "--tau", 1.15, "--typicality", 99, "--json", *ARGUMENTS)
    assert done.returncode == 0, done.stderr
    told, found = json.loads(done.stdout), world.typicality(x, samples=99)
    for name in ["p_value", "band", "less_likely"]:
        assert getattr(found, name).tolist() == [image["typicality"][name] for image in told["images"]], name
    assert found.log_px.tolist() == [image["log_px"] for image in told["images"]]
    assert list(found.log_px_of_samples) == told["typicality"]["log_px_of_samples"]
    assert {"typical", "far-outside"} <= set(found.band.tolist())
    with pytest.raises(ValueError, match="^samples=38: .*at least 39"):
        world.typicality(x, samples=38)


def test_at_tau_0_images_have_no_posterior(world):
    x = world.sample(2, seed=7).x
    points = bayescope.World("mnist", tau=0.0, device="cpu")
    for ask in (points.posterior, points.log_prob, points.typicality):
        with pytest.raises(ValueError, match="at τ = 0"):
            ask(x)


def test_tensors_are_asked_as_arrays(world):
    torch = pytest.importorskip("torch")
    drawn = world.sample(3, seed=7)
    x, y = torch.from_numpy(drawn.x).requires_grad_(), torch.from_numpy(drawn.y)
    assert np.array_equal(world.posterior(x), world.posterior(drawn.x))
    assert np.array_equal(world.log_prob(x, y), world.log_prob(drawn.x, drawn.y))


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


def test_a_stream_does_not_go_on_in_another_precision(world):
    exact = bayescope.World("mnist", tau=world.tau_value, device="cpu", precision="f64")
    state = exact.stream(3, seed=4).state_dict()
    assert state["precision"] == "f64"
    with pytest.raises(ValueError, match="differs in precision$"):
        world.stream(3, seed=4).load_state_dict(state)
    exact.stream(3, seed=4).load_state_dict(state)


def test_threads_share_a_stream_and_each_batch_comes_once(world):
    stream, whole, taken, failed = world.stream(3, seed=4), world.sample(60, seed=4), [], []

    def take():
        try:
            for _ in range(5):
                taken.append(next(stream).x.tobytes())
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        # Of a stream that another thread waits for.
        assert 0 <= stream.position <= 20
        time.sleep(0.01)
    assert not failed and stream.position == 20
    assert sorted(taken) == sorted(whole.x[i : i + 3].tobytes() for i in range(0, 60, 3))


@pytest.mark.parametrize("n", [2**45, 2**62])
def test_more_images_than_memory_holds_are_an_error(world, n):
    with pytest.raises(MemoryError):
        world.sample(n)
    with pytest.raises(MemoryError):
        next(world.stream(n))


def test_a_stream_ends_with_the_numbers_of_its_images(world):
    stream = world.stream(3, seed=4)
    first = next(stream)
    stream.position = 2**63
    with pytest.raises(ValueError, match="their numbers"):
        next(stream)
    stream.position = 0
    assert np.array_equal(next(stream).x, first.x)


def test_classes_are_given_by_name_number_or_image(world):
    each = world.sample(4, seed=1, classes=[3, 1, 3, 0])
    assert each.y.tolist() == [3, 1, 3, 0]
    one = world.sample(4, seed=1, classes=world.classes[3])
    assert np.array_equal(each.x[[0, 2]], one.x[[0, 2]])
    assert np.array_equal(world.sample(4, seed=1, classes=3).x, one.x)
    assert np.array_equal(world.sample(4, seed=1, classes=["3", world.classes[1], 3, "0"]).x, each.x)
    for unknown in ["no such class", -1, len(world.classes)]:
        for classes in (unknown, [0, 1, unknown, 0]):
            with pytest.raises(ValueError, match="this world's classes are"):
                world.sample(4, classes=classes)


@pytest.mark.parametrize("value", [-1, 2**64])
def test_a_number_that_cannot_be_is_named_with_its_argument(world, value):
    stream = world.stream(3)
    asked = {
        "n": lambda: world.sample(value),
        "seed": lambda: world.sample(1, seed=value),
        "samples": lambda: world.bayes_error(samples=value),
        "batch_size": lambda: world.stream(value),
        "batch": lambda: world.stream(3, batch=value),
        "position": lambda: setattr(stream, "position", value),
    }
    for name, ask in asked.items():
        with pytest.raises(ValueError, match=f"^{name}={value}:"):
            ask()


def test_a_state_without_its_position_is_no_state(world):
    state = world.stream(3).state_dict()
    del state["position"]
    with pytest.raises(ValueError, match="no position"):
        world.stream(3).load_state_dict(state)


def test_a_sample_that_leaves_the_finite_numbers_is_an_arithmetic_error():
    with pytest.raises(ArithmeticError, match="sample 0 leaves the finite numbers.*lower τ"):
        bayescope.World("cells", tau=1e18, device="cpu").sample(2)


def test_draws_in_64_bits_are_not_those_kept_in_32():
    def error(precision):
        # A map for each class: of one map for all, errors come from the Gaussians alone.
        world = pathlib.Path(__file__).parents[2] / "tests/worlds/animals"
        return bayescope.World(str(world), device="cpu", precision=precision).bayes_error(samples=32, seed=3)["value"]

    exact, usual = error("f64"), error("f32")
    assert exact != usual and exact == pytest.approx(usual, abs=1e-4)
    assert error("f64") == exact


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
    # A shell has what it puts into the background ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    begun = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        world.sample(1_000_000, seed=1)
    assert time.monotonic() - begun < 30
    assert world.sample(2, seed=1).y.shape == (2,)


def test_the_wheel_has_its_licences_and_says_whose_images_were_learnt():
    names = {file.name for file in metadata.files("bayescope")}
    assert {"LICENSE-MIT", "LICENSE-APACHE", "data-notices.txt"} <= names


def test_a_script_for_slurm_starts_the_package(tmp_path):
    run = tmp_path / "run"
    planned = command("plan", "scaling", "--out", run, *ARGUMENTS)
    assert planned.returncode == 0, planned.stderr
    script = command("slurm", run)
    assert f"\nbayescope=({shlex.quote(sys.executable)} -m bayescope)\n" in script.stdout, script.stdout + script.stderr


def test_a_lent_device_computes_in_a_process_of_the_package(world):
    serve = ["serve", "--bind", "127.0.0.1:0", "--without-token", "--json", *ARGUMENTS]
    lender = subprocess.Popen([sys.executable, "-m", "bayescope", *serve], stdout=subprocess.PIPE, text=True)
    try:
        address = json.loads(lender.stdout.readline())["address"]
        lent = bayescope.World("mnist", tau=1.15, device=address)
        assert np.allclose(lent.sample(2, seed=7).x, world.sample(2, seed=7).x, atol=1e-4)
    finally:
        lender.terminate()
        lender.communicate()

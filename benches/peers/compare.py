"""Bayescope beside PyTorch on the same machine, in alternation: the table of docs/performance.md, Beside PyTorch.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch torchvision
    git clone https://github.com/apple/ml-tarflow /tmp/ml-tarflow          # the paper's code; its licence does not let us ship it
    /tmp/venv/bin/python benches/peers/compare.py --bayescope target/release/bayescope --tarflow /tmp/ml-tarflow

What is timed, both sides with the same number of threads (--threads, default all cores):

* posterior: log-likelihoods of 64 images under every class, of the Glow `mnist@9b44f254`, of `animals` (tests/worlds/animals) and (with --reference, the
  folder that holds config2.safetensors) of the reference configuration 2. Of a TarFlow PyTorch takes all classes in one batch or one class after the other,
  whichever a trial shows to be faster.
* sampling: 64 images of the same worlds; of a TarFlow token by token, keys and values cached on both sides (the paper's own `reverse`).
* training a world: steps of the same worlds on 64 of their own images with noise: forward, backward, gradient clipped, AdamW and the
  moving average of the weights.
* training: steps of ResNet-18, of a small ViT and of EBO's ConvNet on 128 images of 3 x 32 x 32, forward, backward and AdamW, whole batch at once.

A round is one process of bayescope (a warm-up, then --runs timed runs, its median) and then the same in this process by
PyTorch; there are --rounds rounds (five). The table has the medians of the rounds with the least and the most, and the ratio
PyTorch's time / bayescope's with the least and the most of the rounds: above 1 bayescope is faster. Beside it the same ratio of
processor time, which other programs on the machine disturb less. Before that, both must agree: log-likelihoods of 8 samples of
bayescope under every class to 1e-5 relative, parameters of the trained networks in number.

--device names what bayescope computes on, as its own option does (cpu), and --torch-device what PyTorch does (cpu; cuda): on a
card each run ends when the device has done it. Cards have not been tried yet. Beside them processor times say little.

--json FILE writes everything. Load of the machine before and after is printed: on a busy machine believe the processor times.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile

import numpy
import torch
import torchvision

from flows import IMAGES, GlowWorld, World, read_safetensors, timed
from networks import BATCH, ConvNet, Training, small_vit


class Ours:
    """Bayescope's answers, as JSON."""

    def __init__(self, program: str, device: str, threads: int, runs: int):
        self.program, self.device, self.runs = program, device, runs
        self.environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}

    def ask(self, *arguments: str) -> dict:
        done = subprocess.run([self.program, *arguments], env=self.environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(arguments)}: {done.stderr}")
        return json.loads(done.stdout) if "--json" in arguments else {}

    def bench(self, *arguments: str) -> list[tuple[float, float]]:
        """(median, processor time) of each bench, milliseconds."""
        answer = self.ask("bench", *arguments, "--device", self.device, "--runs", str(self.runs), "--json")
        return [(bench["median"], bench["cpu"]) for bench in answer["benches"]]

    def parameters(self, architecture: str) -> int:
        arguments = ["--architectures", architecture, "--batch", "8", "--runs", "1", "--device", "cpu", "--json"]
        return self.ask("bench", "train", *arguments)["benches"][0]["parameters"]

    def trained(self, oracle: str) -> int:
        """Parameters of a world's flow."""
        arguments = ["--batch", "2", "--runs", "1", "--device", "cpu", "--json"]
        return self.ask("bench", "train-oracle", oracle, *arguments)["benches"][0]["parameters"]


def check_world(ours: Ours, oracle: str, world: World | GlowWorld) -> float:
    """Largest relative difference of log-likelihoods."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/x.npz"
        ours.ask("sample", oracle, "--n", "8", "--seed", "1", "--out", file, "--device", "cpu")
        answer = ours.ask("posterior", oracle, file, "--device", ours.device, "--json")
        found = torch.tensor([image["log_likelihood"] for image in answer["images"]], dtype=torch.float64, device="cpu")
        x = torch.from_numpy(numpy.load(file)["x"].reshape(8, -1, world.side, world.side))
    expected = world.posterior(x.to(torch.get_default_device())).cpu()
    return float(((found - expected).abs() / expected.abs()).max())


def worlds(arguments, ours: Ours, folder: str) -> list[dict]:
    """Posterior and sampling of every world."""
    root = pathlib.Path(__file__).resolve().parents[2]
    animals = root / "tests/worlds/animals"
    # The digits without noise: the logit of their preprocessing is computed here, too.
    digits = root / "assets/oracles/mnist-9b44f254/weights.safetensors"
    cases = [("mnist@9b44f254", "mnist@9b44f254", GlowWorld(read_safetensors(digits), 32))]
    if arguments.tarflow:
        tarflow = lambda file, side: World(arguments.tarflow, read_safetensors(file), side)  # noqa: E731
        cases.append(("animals", str(animals), tarflow(animals / "weights.safetensors", 32)))
    if arguments.tarflow and arguments.reference:
        file = pathlib.Path(folder) / "x_model_4_64_4_2_0.05.safetensors"
        shutil.copy(pathlib.Path(arguments.reference) / "config2.safetensors", file)
        cases.append(("configuration 2", str(file), tarflow(file, 16)))
    rows = []
    for name, oracle, world in cases:
        difference = check_world(ours, oracle, world)
        print(f"{name}: log-likelihoods differ by {difference:.1e} at most", file=sys.stderr)
        assert difference < 1e-5, f"{name}: both do not compute the same"
        peer = world.training(IMAGES)
        assert ours.trained(oracle) == peer.count(), f"{name}: not the same parameters"
        mine, theirs = [], []
        for _ in range(arguments.rounds):
            steps = ours.bench("train-oracle", oracle, "--batch", str(IMAGES))
            mine.append(ours.bench("posterior", oracle) + steps)
            score = timed(lambda: world.posterior(world.images), 1, arguments.runs)
            theirs.append([score, timed(world.sample, 1, arguments.runs), timed(peer.step, 2, arguments.runs)])
        for i, task in enumerate(["posterior", "sampling", "training"]):
            what = f"{task}, {name}, {IMAGES} images" + (f" x {world.classes} classes" if i == 0 else "")
            rows.append(row(what, IMAGES, [m[i] for m in mine], [t[i] for t in theirs]))
    return rows


def training(arguments, ours: Ours) -> list[dict]:
    """Training of every network."""
    networks = {"resnet-18": torchvision.models.resnet18(num_classes=10), "vit-small": small_vit(), "convnet": ConvNet()}
    rows = []
    for name, network in networks.items():
        peer = Training(network)
        assert ours.parameters(name) == peer.parameters(), f"{name}: not the same network"
        mine, theirs = [], []
        for _ in range(arguments.rounds):
            sizes = ["--side", "32", "--batch", str(BATCH), "--shards", "1"]
            mine.append(ours.bench("train", "--architectures", name, *sizes)[0])
            theirs.append(timed(peer.step, 2, arguments.runs))
        rows.append(row(f"training, {name}, batch {BATCH}", BATCH, mine, theirs))
    return rows


def row(what: str, images: int, mine: list[tuple[float, float]], theirs: list[tuple[float, float]]) -> dict:
    """Medians over rounds, with the least and the most."""
    middle = lambda values: {"median": statistics.median(values), "min": min(values), "max": max(values)}  # noqa: E731
    done = {
        "name": what,
        "bayescope_ms": middle([wall for wall, _ in mine]),
        "pytorch_ms": middle([wall for wall, _ in theirs]),
        "ratio": middle([t[0] / m[0] for m, t in zip(mine, theirs)]),
        "cpu_ratio": middle([t[1] / m[1] for m, t in zip(mine, theirs)]) if all(m[1] for m in mine) else None,
        "images": images,
    }
    print(f"{what}: {done['ratio']['median']:.2f}", file=sys.stderr)
    return done


def machine() -> str:
    """The processor's name."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor()
    return f"{name}, {os.cpu_count()} cores, {platform.system()}"


def print_table(report: dict) -> None:
    print(f"{report['machine']}; {report['threads']} threads; PyTorch {report['torch']}; {report['bayescope']}; on {' and '.join(report['devices'])}")
    print(f"load {report['load'][0]:.1f} before, {report['load'][1]:.1f} after; {report['rounds']} rounds, medians [least, most]\n")
    print("| | bayescope | PyTorch | ratio | ratio of processor time |\n|---|---|---|---|---|")
    for r in report["benches"]:
        time_of = lambda t: f"{t['median']:.1f} ms [{t['min']:.1f}, {t['max']:.1f}]"  # noqa: E731
        ratio = lambda t: f"{t['median']:.2f} [{t['min']:.2f}, {t['max']:.2f}]" if t else "-"  # noqa: E731
        times = f"{time_of(r['bayescope_ms'])} | {time_of(r['pytorch_ms'])}"
        print(f"| {r['name']} | {times} | **{ratio(r['ratio'])}** | {ratio(r['cpu_ratio'])} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bayescope", default="target/release/bayescope", help="the program")
    parser.add_argument("--tarflow", help="folder of the paper's transformer_flow.py; without it, no TarFlow")
    parser.add_argument("--reference", help="folder of the reference checkpoint config2.safetensors")
    parser.add_argument("--device", default="cpu", help="what bayescope computes on")
    parser.add_argument("--torch-device", default="cpu", help="what PyTorch computes on")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=5, help="timed runs of a round")
    parser.add_argument("--json", help="file to write")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.torch_device != "cpu":  # naming a default costs every call a little
        torch.set_default_device(arguments.torch_device)
    ours = Ours(arguments.bayescope, arguments.device, arguments.threads, arguments.runs)
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        rows = worlds(arguments, ours, folder)
    rows += training(arguments, ours)
    version = subprocess.run([arguments.bayescope, "--version"], capture_output=True, text=True).stdout.strip()
    report = {
        "machine": machine(),
        "threads": arguments.threads,
        "devices": [arguments.device, arguments.torch_device],
        "torch": torch.__version__,
        "bayescope": version,
        "rounds": arguments.rounds,
        "runs": arguments.runs,
        "load": [before, os.getloadavg()[0]],
        "benches": rows,
    }
    print_table(report)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()

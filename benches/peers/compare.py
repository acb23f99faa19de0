"""Bayescope beside PyTorch on the same machine, in alternation: the table of docs/performance.md, Beside PyTorch.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch torchvision
    git clone https://github.com/apple/ml-tarflow /tmp/ml-tarflow          # the paper's code; its licence does not let us ship it
    /tmp/venv/bin/python benches/peers/compare.py --bayescope target/release/bayescope --tarflow /tmp/ml-tarflow

What is timed, both sides with the same number of threads (--threads, default all cores):

* posterior: log-likelihoods of 64 images under every class, of the Glow `mnist@9b44f254`, of `animals` (tests/worlds/animals) and (with --reference, the
  folder that holds config2.safetensors) of the reference configuration 2. Of a TarFlow PyTorch takes all classes in one batch or one class after the other,
  whichever a trial shows to be faster.
* sampling: 64 images of the same worlds; of a TarFlow token by token, keys and values cached on both sides (the paper's own `reverse`).
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
import time

import numpy
import torch
import torchvision
from torch.nn import functional

IMAGES = 64
BATCH = 128


def read_safetensors(path: str) -> dict[str, torch.Tensor]:
    """Arrays of a file of 32-bit numbers."""
    data = pathlib.Path(path).read_bytes()
    length = int.from_bytes(data[:8], "little")
    arrays = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            values = numpy.frombuffer(data[8 + length + first : 8 + length + last], dtype="<f4")
            arrays[name] = torch.from_numpy(values.reshape(entry["shape"]).copy())
    return arrays


def noise(*shape: int) -> torch.Tensor:
    """The same numbers on every device."""
    generator = torch.Generator("cpu").manual_seed(1)
    return torch.randn(*shape, generator=generator, device="cpu").to(torch.get_default_device())


class World:
    """A TarFlow by the paper's code."""

    def __init__(self, folder: str, arrays: dict[str, torch.Tensor], side: int):
        sys.path.insert(0, folder)
        from transformer_flow import Model

        classes = arrays["blocks.0.class_embed"].shape[0]
        dims, channels = arrays["var"].shape[1], arrays["blocks.0.pos_embed"].shape[1]
        patch = round((dims // 3) ** 0.5)
        blocks = 1 + max(int(name.split(".")[1]) for name in arrays if name.startswith("blocks."))
        layers = 1 + max(int(name.split(".")[3]) for name in arrays if ".attn_blocks." in name)
        nvp = arrays["blocks.0.proj_out.bias"].shape[0] == 2 * dims
        self.model = Model(3, side, patch, channels, blocks, layers, nvp, classes)
        missing, unexpected = self.model.load_state_dict(arrays, strict=False)
        assert not unexpected and all(name.endswith("attn_mask") for name in missing), (missing, unexpected)
        self.model.eval()
        self.classes, self.side = classes, side
        self.noise = noise(IMAGES, *arrays["var"].shape)
        self.labels = torch.arange(IMAGES) % classes
        with torch.no_grad():
            self.images = self.model.reverse(self.noise.clone(), self.labels)
        self.at_once = True
        trial = {at_once: timed(lambda: self.posterior(self.images, at_once), 1, 2)[0] for at_once in (True, False)}
        self.at_once = trial[True] < trial[False]

    def one(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        z, _, log_det = self.model(x, labels)
        var = self.model.var
        energy = 0.5 * (z.double() ** 2 / var + (2 * torch.pi * var).log()).sum(dim=(1, 2))
        # The code's log-determinants are means over an image's numbers.
        return log_det.double() * z[0].numel() - energy

    def posterior(self, x: torch.Tensor, at_once: bool | None = None) -> torch.Tensor:
        """log p(x|y) [images, classes], nats."""
        n, k = len(x), self.classes
        with torch.no_grad():
            if self.at_once if at_once is None else at_once:
                return self.one(x.repeat_interleave(k, 0), torch.arange(k).repeat(n)).view(n, k)
            return torch.stack([self.one(x, torch.full((n,), y)) for y in range(k)], dim=1)

    def sample(self) -> None:
        with torch.no_grad():
            self.model.reverse(self.noise.clone(), self.labels)


class GlowWorld:
    """A conditional Glow (3 levels of steps of ActNorm, 1x1 convolution and affine coupling), normalisations folded into the
    convolutions before them and in the memory format that a trial shows to be faster."""

    def __init__(self, arrays: dict[str, torch.Tensor], side: int):
        self.side, self.classes = side, len(arrays["means"])
        self.means, self.variance = arrays["means"], arrays["cov_diag"].abs()
        self.bounds = arrays["bounds"].item()
        self.levels, prefix = [], "flows."
        while f"{prefix}steps.0.conv.weight" in arrays:
            count = sum(name.startswith(f"{prefix}steps.") and name.endswith(".norm.logs") for name in arrays)
            self.levels.append([self.folded(arrays, f"{prefix}steps.{i}.") for i in range(count)])
            prefix += "next."
        self.noise = noise(IMAGES, *self.variance.shape)
        self.labels = torch.arange(IMAGES) % self.classes
        self.format = torch.contiguous_format
        self.images = self.decode(self.latents())
        formats = (torch.contiguous_format, torch.channels_last)
        times = {}
        for self.format in formats:
            times[self.format] = timed(lambda: self.posterior(self.images), 1, 3)[0]
        self.format = min(formats, key=times.get)

    @staticmethod
    def folded(arrays: dict[str, torch.Tensor], name: str) -> dict[str, torch.Tensor]:
        """A step ready to run."""

        def norm(which: str) -> tuple[torch.Tensor, torch.Tensor]:
            weight, bias, mean, var = (
                arrays[f"{name}coup.nn.{which}.{part}"] for part in ("weight", "bias", "running_mean", "running_var")
            )
            scale = weight / (var + 1e-5).sqrt()
            return scale, bias - mean * scale

        mix = arrays[f"{name}conv.weight"] * arrays[f"{name}norm.logs"].exp().view(1, -1)
        step = {"mix": mix, "shift": mix @ arrays[f"{name}norm.bias"].view(-1), "unmix": torch.linalg.inv(mix)}
        step["log_det"] = arrays[f"{name}norm.logs"].double().sum() + torch.linalg.slogdet(arrays[f"{name}conv.weight"].double())[1]
        step["in_scale"], step["in_shift"] = (values.view(1, -1, 1, 1) for values in norm("in_norm"))
        for conv, after in (("in", "mid"), ("mid", "out")):
            scale, step[f"{conv}_bias"] = norm(f"{after}_norm")
            step[conv] = arrays[f"{name}coup.nn.{conv}_conv.weight"] * scale.view(-1, 1, 1, 1)
        step["out"], step["out_bias"] = (arrays[f"{name}coup.nn.out_conv.{part}"] for part in ("weight", "bias"))
        step["scale"] = arrays[f"{name}coup.scale"]
        return step

    @staticmethod
    def network(step: dict[str, torch.Tensor], x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """s and t of the coupling."""
        h = functional.relu(x * step["in_scale"] + step["in_shift"])
        h = functional.relu(functional.conv2d(h, step["in"], step["in_bias"], padding=1))
        h = functional.relu(functional.conv2d(h, step["mid"], step["mid_bias"]))
        h = functional.conv2d(h, step["out"], step["out_bias"], padding=1)
        return step["scale"] * torch.tanh(h[:, 0::2]), h[:, 1::2]

    def encode(self, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """z of the shape of v, and log |det| of each image, nats."""
        p = ((2 * v - 1) * self.bounds + 1) / 2
        log_det = (numpy.log(self.bounds) - p.double().log() - (1 - p.double()).log()).sum(dim=(1, 2, 3))
        x, kept = functional.pixel_unshuffle(torch.logit(p), 2).contiguous(memory_format=self.format), []
        for l, steps in enumerate(self.levels):
            if l > 0:
                x, half = functional.pixel_unshuffle(x, 2).chunk(2, 1)
                kept.append(half)
            for step in steps:
                x = functional.conv2d(x, step["mix"][:, :, None, None], step["shift"])
                a, b = x.chunk(2, 1)
                s, t = self.network(step, b)
                x = torch.cat([(a + t) * s.exp(), b], 1)
                log_det = log_det + s.double().sum(dim=(1, 2, 3)) + step["log_det"] * x.shape[2] * x.shape[3]
        while kept:
            x = functional.pixel_shuffle(torch.cat([x, kept.pop()], 1), 2)
        return functional.pixel_shuffle(x, 2), log_det

    def posterior(self, x: torch.Tensor) -> torch.Tensor:
        """log p(x|y) [images, classes], nats."""
        with torch.no_grad():
            z, log_det = self.encode(x)
            normal = (2 * torch.pi * self.variance.double()).log().sum()
            distance = ((z[:, None].double() - self.means.double()) ** 2 / self.variance.double()).sum(dim=(2, 3, 4))
            return log_det[:, None] - 0.5 * (distance + normal)

    def latents(self) -> torch.Tensor:
        return self.means[self.labels] + self.noise * self.variance.sqrt()

    def decode(self, z: torch.Tensor) -> torch.Tensor:
        """Images of latents."""
        with torch.no_grad():
            x, kept = functional.pixel_unshuffle(z, 2).contiguous(memory_format=self.format), []
            for _ in self.levels[1:]:
                x, half = functional.pixel_unshuffle(x, 2).chunk(2, 1)
                kept.append(half)
            for steps in reversed(self.levels):
                for step in reversed(steps):
                    a, b = x.chunk(2, 1)
                    s, t = self.network(step, b)
                    x = torch.cat([a * (-s).exp() - t, b], 1) - step["shift"].view(1, -1, 1, 1)
                    x = functional.conv2d(x, step["unmix"][:, :, None, None])
                if kept:
                    x = functional.pixel_shuffle(torch.cat([x, kept.pop()], 1), 2)
            p = torch.sigmoid(functional.pixel_shuffle(x, 2))
            return ((2 * p - 1) / self.bounds + 1) / 2

    def sample(self) -> None:
        self.decode(self.latents())


class ConvNet(torch.nn.Module):
    """PyTorch's MNIST example, EBO's ConvNet, for 32 x 32 pixels of 3 channels."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = torch.nn.Conv2d(3, 32, 3), torch.nn.Conv2d(32, 64, 3)
        self.fc1, self.fc2 = torch.nn.Linear(64 * 14 * 14, 128), torch.nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = functional.max_pool2d(functional.relu(self.conv2(functional.relu(self.conv1(x)))), 2)
        h = functional.relu(self.fc1(functional.dropout(h.flatten(1), 0.25, self.training)))
        return self.fc2(functional.dropout(h, 0.5, self.training))


class Training:
    """Steps of AdamW of a network."""

    def __init__(self, network: torch.nn.Module):
        self.network = network.train()
        self.optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, weight_decay=0.01)
        self.images = noise(BATCH, 3, 32, 32)
        self.labels = torch.arange(BATCH) % 10

    def step(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(self.network(self.images), self.labels)
        loss.backward()
        # Bayescope reports the gradient's norm with every step.
        torch.nn.utils.get_total_norm([p.grad for p in self.network.parameters()]).item()
        self.optimizer.step()
        loss.item()

    def parameters(self) -> int:
        return sum(p.numel() for p in self.network.parameters())


def small_vit() -> torch.nn.Module:
    """Bayescope's `vit-small`: patches of 4, 6 layers of 192 channels, 3 heads."""
    return torchvision.models.VisionTransformer(
        image_size=32, patch_size=4, num_layers=6, num_heads=3, hidden_dim=192, mlp_dim=768, num_classes=10
    )


def timed(work, warm: int, runs: int) -> tuple[float, float]:
    """Median milliseconds of the runs, and mean processor time of one."""

    def done() -> None:
        work()
        if torch.get_default_device().type == "cuda":
            torch.cuda.synchronize()

    for _ in range(warm):
        done()
    times, before = [], time.process_time()
    for _ in range(runs):
        started = time.perf_counter()
        done()
        times.append(1e3 * (time.perf_counter() - started))
    return statistics.median(times), 1e3 * (time.process_time() - before) / runs


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
        mine, theirs = [], []
        for _ in range(arguments.rounds):
            mine.append(ours.bench("posterior", oracle))
            score = timed(lambda: world.posterior(world.images), 1, arguments.runs)
            theirs.append([score, timed(world.sample, 1, arguments.runs)])
        for i, task in enumerate(["posterior", "sampling"]):
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

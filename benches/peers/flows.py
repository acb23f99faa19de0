"""The worlds of compare.py by PyTorch: a TarFlow by the paper's code, a Glow, and steps of their training."""

import copy
import json
import pathlib
import statistics
import sys
import time
from collections.abc import Callable

import numpy
import torch
from torch.nn import functional

IMAGES = 64
# The optimisation of bayescope's `bench train-oracle`.
LAMBDA, CLIP, RATE, DECAY = 10.0, 10.0, 1e-5, 0.998


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
        self.arrays, self.classes, self.side = arrays, classes, side
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

    def training(self, batch: int) -> "FlowTraining":
        """Steps on its own images, pixels with Gaussian noise (the paper's train.py)."""
        model = copy.deepcopy(self.model).train()
        images, labels = self.images[:batch].clamp(-1, 1), self.labels[:batch]

        def loss() -> torch.Tensor:
            z, _, log_det = model(images + 0.05 * torch.randn_like(images), labels)
            return model.get_loss(z, log_det)

        return FlowTraining(list(model.parameters()), loss)


class FlowTraining:
    """Steps of AdamW of a flow, its gradient clipped, and the moving average of its weights."""

    def __init__(self, parameters: list[torch.Tensor], loss: Callable[[], torch.Tensor]):
        self.parameters, self.loss = parameters, loss
        self.average = [p.detach().clone() for p in parameters]
        self.optimizer = torch.optim.AdamW(parameters, lr=RATE, weight_decay=0.0)

    def step(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, CLIP).item()
        self.optimizer.step()
        torch._foreach_lerp_(self.average, [p.detach() for p in self.parameters], 1 - DECAY)
        loss.item()

    def count(self) -> int:
        return sum(p.numel() for p in self.parameters)


class GlowWorld:
    """A conditional Glow (3 levels of steps of ActNorm, 1x1 convolution and affine coupling), normalisations folded into the
    convolutions before them and in the memory format that a trial shows to be faster."""

    def __init__(self, arrays: dict[str, torch.Tensor], side: int):
        self.side, self.classes = side, len(arrays["means"])
        self.means, self.variance = arrays["means"], arrays["cov_diag"].abs()
        self.bounds = arrays["bounds"].item()
        self.arrays, self.levels = arrays, self.all_folded(arrays)
        for step in (step for steps in self.levels for step in steps):
            step["unmix"] = torch.linalg.inv(step["mix"])[:, :, None, None]
        self.noise = noise(IMAGES, *self.variance.shape)
        self.labels = torch.arange(IMAGES) % self.classes
        self.format = torch.contiguous_format
        self.images = self.decode(self.latents())
        formats = (torch.contiguous_format, torch.channels_last)
        times = {}
        for self.format in formats:
            times[self.format] = timed(lambda: self.posterior(self.images), 1, 3)[0]
        self.format = min(formats, key=times.get)

    @classmethod
    def all_folded(cls, arrays: dict[str, torch.Tensor]) -> list[list[dict[str, torch.Tensor]]]:
        """The steps of every level, ready to run."""
        levels, prefix = [], "flows."
        while f"{prefix}steps.0.conv.weight" in arrays:
            count = sum(name.startswith(f"{prefix}steps.") and name.endswith(".norm.logs") for name in arrays)
            steps = [f"{prefix}steps.{i}." for i in range(count)]
            # Matrices of a level at once: one call each instead of one for every step.
            weights = torch.stack([arrays[f"{step}conv.weight"] for step in steps])
            logs = torch.stack([arrays[f"{step}norm.logs"].view(-1) for step in steps])
            log_dets = logs.double().sum(1) + torch.linalg.slogdet(weights.double())[1]
            folded = [cls.folded(arrays, step) for step in steps]
            levels.append([{**step, "log_det": log_det} for step, log_det in zip(folded, log_dets)])
            prefix += "next."
        return levels

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
        step = {"mix": mix, "shift": mix @ arrays[f"{name}norm.bias"].view(-1)}
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

    def front(self, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The logit of images [0, 1], and its log |det|."""
        p = ((2 * v - 1) * self.bounds + 1) / 2
        return torch.logit(p), (numpy.log(self.bounds) - p.double().log() - (1 - p.double()).log()).sum(dim=(1, 2, 3))

    def through(self, x: torch.Tensor, levels: list, sums: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        """z of the shape of x, and log |det| of each image, nats, added in the format `sums`."""
        log_det = torch.zeros(len(x), dtype=sums)
        x, kept = functional.pixel_unshuffle(x, 2).contiguous(memory_format=self.format), []
        for l, steps in enumerate(levels):
            if l > 0:
                x, half = functional.pixel_unshuffle(x, 2).chunk(2, 1)
                kept.append(half)
            for step in steps:
                x = functional.conv2d(x, step["mix"][:, :, None, None], step["shift"])
                a, b = x.chunk(2, 1)
                s, t = self.network(step, b)
                x = torch.cat([(a + t) * s.exp(), b], 1)
                log_det = log_det + s.sum(dim=(1, 2, 3), dtype=sums) + step["log_det"] * x.shape[2] * x.shape[3]
        while kept:
            x = functional.pixel_shuffle(torch.cat([x, kept.pop()], 1), 2)
        return functional.pixel_shuffle(x, 2), log_det

    def posterior(self, x: torch.Tensor) -> torch.Tensor:
        """log p(x|y) [images, classes], nats."""
        with torch.no_grad():
            y, log_det = self.front(x)
            z, inner = self.through(y, self.levels, torch.float64)
            normal = (2 * torch.pi * self.variance.double()).log().sum()
            distance = ((z[:, None].double() - self.means.double()) ** 2 / self.variance.double()).sum(dim=(2, 3, 4))
            return (log_det + inner)[:, None] - 0.5 * (distance + normal)

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
                    x = functional.conv2d(x, step["unmix"])
                if kept:
                    x = functional.pixel_shuffle(torch.cat([x, kept.pop()], 1), 2)
            p = torch.sigmoid(functional.pixel_shuffle(x, 2))
            return ((2 * p - 1) / self.bounds + 1) / 2

    def sample(self) -> None:
        self.decode(self.latents())

    def training(self, batch: int) -> FlowTraining:
        """Steps on its own images, pixels with uniform noise; loss of EBO section 4.1 with its own posterior."""
        # Running statistics, the bounds and EBO's linear layer, which this loss does not use, stay.
        fixed = ("running_mean", "running_var", "bounds", "linproj.weight", "linproj.bias")
        arrays = {name: array.clone().requires_grad_(not name.endswith(fixed)) for name, array in self.arrays.items()}
        pixels, labels = (self.images[:batch] * 256).floor().clamp(0, 255), self.labels[:batch]
        dims = pixels[0].numel()

        def loss() -> torch.Tensor:
            y, front = self.front((pixels + torch.rand_like(pixels)) / 256)
            z, log_det = self.through(y, self.all_folded(arrays), torch.float32)
            means, variance = arrays["means"].flatten(1), arrays["cov_diag"].abs().flatten()
            # All classes by one product: |z|^2 - 2 z mu + |mu|^2, in the variance's metric.
            z, scaled = z.flatten(1), means / variance
            distance = (z * z / variance).sum(1, keepdim=True) - 2 * z @ scaled.T + (means * scaled).sum(1)
            own = distance.gather(1, labels[:, None]).mean()
            nll = 0.5 * (own + (2 * torch.pi * variance).log().sum()) - log_det.mean() - front.mean()
            return (nll + LAMBDA * functional.cross_entropy(-0.5 * distance, labels)) / dims

        return FlowTraining([array for array in arrays.values() if array.requires_grad], loss)



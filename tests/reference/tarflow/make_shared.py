"""Reference values of a TarFlow with one map for all classes: shared.json beside this file.

Run: python make_shared.py ML_TARFLOW COMMIT    (the folder of apple/ml-tarflow and its commit; pip install torch numpy; seconds)

The map is the public `Model` built without classes, in float64. The base is NumPy's: N(μ_y, τ²·diag(var)) for class y, both in the order of
tokens. Every array follows from the fill formula of the reference README (splitmix64 of its name and the seed, rounded to f32); base and scale
of each stand in `params`. `reverse` begins at μ_y + τ·√var·z; the public code multiplies by √var itself, so it is given μ_y/√var + τ·z.
"""

import json
import os
import sys

import numpy as np

sys.path.insert(0, sys.argv[1])
import torch
import transformer_flow

HERE = os.path.dirname(os.path.abspath(__file__))
SEED = 5
M = (1 << 64) - 1
CLASSES = 4
TAUS = [1.0, 0.5, 1.25]
MODEL = dict(in_channels=3, img_size=8, patch_size=2, channels=64, num_blocks=3, layers_per_block=1)


def fill(name, shape, base, scale):
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = ((state ^ byte) * 0x100000001B3) & M
    state ^= SEED
    values = np.empty(int(np.prod(shape)))
    for i in range(values.size):
        state = (state + 0x9E3779B97F4A7C15) & M
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M
        values[i] = base + scale * (2.0 * ((z ^ (z >> 31)) >> 40) / 2.0**24 - 1.0)
    return values.astype(np.float32).astype(np.float64).reshape(shape)


def scale_of(name, shape):
    """Base and scale of an array."""
    if name == "var":
        return 1.0, 0.5
    if name.endswith("norm.weight"):
        return 1.0, 0.1
    if name.endswith("weight"):
        gain = 0.26 if "proj_out" in name else 1.7
        return 0.0, gain / shape[1] ** 0.5
    return 0.0, 0.1


def flat(a):
    return {"shape": list(a.shape), "data": [float(f"{v:.15e}") for v in np.asarray(a).reshape(-1)]}


torch.set_default_dtype(torch.float64)
# The public code casts to float32 at three places (`x.float()`); here all stays in float64.
torch.Tensor.float = lambda self: self
model = transformer_flow.Model(**MODEL, num_classes=0).double().eval()
params, state = [], {}
for name, array in model.state_dict().items():
    if name.endswith("attn_mask"):
        continue
    base, scale = scale_of(name, array.shape)
    params.append([name, list(array.shape), base, scale])
    state[name] = torch.from_numpy(fill(name, array.shape, base, scale))
missing, unexpected = model.load_state_dict(state, strict=False)
assert not unexpected and all(name.endswith("attn_mask") for name in missing)

tokens, dims = state["var"].shape
params.append(["means", [CLASSES, tokens, dims], 0.0, 0.6])
means = fill("means", (CLASSES, tokens, dims), 0.0, 0.6)
var = state["var"].numpy()

x = fill("input", (4, 3, 8, 8), 0.0, 1.0)
noise = fill("z", (4, tokens, dims), 0.0, 1.5)
y = [3, 0, 2, 1]
with torch.no_grad():
    z, _, logdet = model(torch.from_numpy(x))
    z, log_det = z.numpy(), logdet.numpy() * tokens * dims
    reverse = {
        str(tau): flat(model.reverse(torch.from_numpy(means[y] / np.sqrt(var) + tau * noise)).numpy()) for tau in TAUS
    }

by_tau = {}
for tau in TAUS:
    spread = tau**2 * var
    quad = ((z[:, None] - means[None]) ** 2 / spread).sum((2, 3))
    log_p = -0.5 * quad - 0.5 * np.log(2 * np.pi * spread).sum() + log_det[:, None]
    top = log_p.max(1, keepdims=True)
    posterior = np.exp(log_p - top)
    posterior /= posterior.sum(1, keepdims=True)
    by_tau[str(tau)] = {"log_p": log_p.tolist(), "posterior": posterior.tolist()}

out = {
    "kind": "tarflow with one map for all classes",
    "seed": SEED,
    "model": {**MODEL, "num_classes": CLASSES},
    "params": params,
    "input": {"name": "input", "shape": list(x.shape), "base": 0.0, "scale": 1.0},
    "z_input": {"name": "z", "shape": list(noise.shape), "base": 0.0, "scale": 1.5},
    "z": flat(z),
    "log_det": log_det.tolist(),
    "tau": by_tau,
    "reverse": {"y": y, "x": reverse},
    "versions": {"torch": torch.__version__, "numpy": np.__version__, "reference": "apple/ml-tarflow@" + sys.argv[2]},
}
with open(os.path.join(HERE, "shared.json"), "w") as f:
    json.dump(out, f, separators=(",", ":"), allow_nan=False)
    f.write("\n")
print({tau: np.round(by_tau[str(tau)]["posterior"], 3).tolist() for tau in TAUS}, np.abs(z).max(), log_det)

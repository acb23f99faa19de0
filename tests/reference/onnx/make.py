"""Small classifiers as PyTorch's two exporters write them, and what ONNX Runtime makes of them.

usage: make.py OUTDIR          (torch, torchvision, onnx, onnxscript, onnxruntime, numpy)

Images follow from the fill formula of the reference values (tests/common/fill.rs): u("input", seed 1) in [-1, 1), or
(u + 1)/2 where a file wants values between 0 and 1 or bytes. Weights: torch.manual_seed(0) and PyTorch's own draws, running
statistics and scales moved away from 0 and 1. Source positions that the newer exporter writes at every node are
taken out, and noted shapes of large graphs.
"""
import json
import os
import sys
import warnings

import numpy as np
import onnx
import onnxruntime as ort
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torchvision.models.convnext import CNBlockConfig, ConvNeXt
from torchvision.models.swin_transformer import SwinTransformer

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
MASK = (1 << 64) - 1
IMAGES = 5  # no multiple of any batch size in use


def fill(name, seed, n):
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = ((state ^ byte) * 0x100000001B3) & MASK
    state ^= seed
    out = []
    for _ in range(n):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        out.append(2.0 * ((z >> 40) / 2.0**24) - 1.0)
    return np.array(out)


def images(shape, unit=False):
    u = fill("input", 1, int(np.prod(shape))).reshape(shape)
    return ((u + 1) / 2 if unit else u).astype(np.float32)


class ConvNet(nn.Module):
    def __init__(self, channels=3, classes=5):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 12, 3, 2, 1), nn.BatchNorm2d(12), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, classes))

    def forward(self, x):
        return self.body(x)


class Probabilities(ConvNet):
    def forward(self, x):
        return F.softmax(10 * self.body(x), dim=1)


class LogProbabilities(ConvNet):
    def forward(self, x):
        return F.log_softmax(self.body(x), dim=-1)


class HandMadeProbabilities(ConvNet):
    """No Softmax node: only its values tell."""

    def forward(self, x):
        e = torch.exp(self.body(x))
        return e / e.sum(dim=1, keepdim=True)


class Independent(ConvNet):
    def forward(self, x):
        return torch.sigmoid(self.body(x))


class TwoOutputs(ConvNet):
    def forward(self, x):
        features = self.body[:-1](x)
        return features, self.body[-1](features)


class BytesNhwc(ConvNet):
    def forward(self, x):
        x = x.permute(0, 3, 1, 2).to(torch.float32) / 255
        mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
        std = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)
        return self.body((x - mean) / std)


class Mobile(nn.Module):
    """Depthwise convolution, squeeze and excitation, hard swish: MobileNetV3's block."""

    def __init__(self):
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(3, 12, 1), nn.BatchNorm2d(12, eps=1e-3), nn.Hardswish())
        self.depthwise = nn.Sequential(nn.Conv2d(12, 12, 5, 2, 2, groups=12), nn.BatchNorm2d(12), nn.Hardswish())
        self.squeeze, self.excite = nn.Conv2d(12, 4, 1), nn.Conv2d(4, 12, 1)
        self.project, self.head = nn.Conv2d(12, 6, 1), nn.Sequential(nn.Linear(6, 10), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(10, 4))

    def forward(self, x):
        x = self.depthwise(self.expand(x))
        x = x * F.hardsigmoid(self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(x, 1)))))
        return self.head(torch.flatten(F.avg_pool2d(self.project(x), 6), 1))


class Vit(nn.Module):
    """Patches, class token, positions, pre-norm attention and GELU: a Vision Transformer of two blocks."""

    def __init__(self, dim=8, heads=2, classes=3):
        super().__init__()
        self.patches = nn.Conv2d(1, dim, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, dim))
        self.positions = nn.Parameter(torch.randn(1, 10, dim))
        self.blocks = nn.ModuleList(nn.ModuleDict(dict(
            ln_1=nn.LayerNorm(dim, eps=1e-6), attention=nn.MultiheadAttention(dim, heads, batch_first=True), ln_2=nn.LayerNorm(dim, eps=1e-6),
            mlp=nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(approximate=kind), nn.Linear(2 * dim, dim)))) for kind in ("none", "tanh"))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        for block in self.blocks:
            y = block["ln_1"](x)
            x = x + block["attention"](y, y, y, need_weights=False)[0]
            x = x + block["mlp"](block["ln_2"](x))
        return self.head(self.norm(x[:, 0]))


def convnext():
    return ConvNeXt([CNBlockConfig(6, 8, 1), CNBlockConfig(8, None, 1)], layer_scale=0.5, num_classes=4)


def swin():
    return SwinTransformer([2, 2], 4, [2, 1], [1, 2], [4, 4], stochastic_depth_prob=0.0, num_classes=4)


RGB, GREY = (3, 12, 12), (1, 12, 12)
BATCH = object()
LEGACY = dict(dynamo=False, opset_version=17)
DYNAMO = dict(dynamo=True, opset_version=18, external_data=False, verbose=False)
# name: (network, image shape, exporter settings, case settings)
CASES = {
    "convnet_legacy13": (ConvNet, RGB, dict(LEGACY, opset_version=13), {}),
    "convnet_unfolded17": (ConvNet, RGB, dict(LEGACY, training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False), {}),
    "convnet_dynamo18": (ConvNet, RGB, DYNAMO, {}),
    "convnet_one17": (ConvNet, RGB, LEGACY, dict(batch=1)),
    "convnet_four18": (ConvNet, RGB, DYNAMO, dict(batch=4)),
    "convnet_open18": (ConvNet, RGB, DYNAMO, dict(open_sides=True)),
    "convnet_external18": (ConvNet, RGB, dict(DYNAMO, external_data=True), {}),
    "convnet_imagenet17": (ConvNet, RGB, LEGACY, dict(normalisation="imagenet", unit=True)),
    "softmax13": (Probabilities, RGB, dict(LEGACY, opset_version=13), dict(scores="probabilities")),
    "softmax_dynamo18": (Probabilities, RGB, DYNAMO, dict(scores="probabilities")),
    "log_softmax17": (LogProbabilities, RGB, LEGACY, dict(scores="log-probabilities")),
    "by_hand18": (HandMadeProbabilities, RGB, DYNAMO, dict(scores="probabilities")),
    "sigmoid17": (Independent, RGB, LEGACY, dict(scores="sigmoid")),
    "two_outputs17": (TwoOutputs, RGB, LEGACY, dict(outputs=["features", "logits"])),
    "bytes_nhwc17": (BytesNhwc, RGB, LEGACY, dict(unit=True, bytes=True)),
    "half17": (ConvNet, RGB, LEGACY, dict(dtype="float16")),
    "double17": (ConvNet, RGB, LEGACY, dict(dtype="float64")),
    "mobile_legacy13": (Mobile, RGB, dict(LEGACY, opset_version=13), {}),
    "mobile_legacy17": (Mobile, RGB, LEGACY, {}),
    "mobile_dynamo18": (Mobile, RGB, DYNAMO, {}),
    "vit_legacy17": (Vit, GREY, LEGACY, {}),
    "vit_dynamo20": (Vit, GREY, dict(DYNAMO, opset_version=20), {}),
    "vit_dynamo23": (Vit, GREY, dict(DYNAMO, opset_version=23), {}),
    "convnext_dynamo18": (convnext, (3, 16, 16), DYNAMO, {}),
    "swin_dynamo18": (swin, (3, 16, 16), DYNAMO, {}),
}


def network(make):
    torch.manual_seed(0)
    model = make().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.3)
            module.running_var.uniform_(0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.3)
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, 0, (2 / module.in_features) ** 0.5)
    return model


def shrink(path, case):
    model = onnx.load(path, load_external_data=False)
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    for value in list(model.graph.value_info) + list(model.graph.input) + list(model.graph.output) + list(model.graph.initializer):
        del value.metadata_props[:]
    del model.graph.metadata_props[:]
    if len(model.graph.node) > 100:
        del model.graph.value_info[:]
    if "normalisation" in case:
        model.metadata_props.add(key="bayescope.normalisation", value=case["normalisation"])
    onnx.save(model, path)
    return model


def export(out, name):
    make, shape, settings, case = CASES[name]
    model = network(make)
    dtype = case.get("dtype", "float32")
    x = images((IMAGES, *shape), case.get("unit", False))
    fed = x
    if case.get("bytes"):
        fed = np.rint(255 * x).astype(np.uint8).transpose(0, 2, 3, 1).copy()
    fed = fed.astype(dtype) if dtype != "float32" else fed
    model = model.half() if dtype == "float16" else model.double() if dtype == "float64" else model
    fixed = case.get("batch")
    example = torch.from_numpy(fed[: fixed or 2])
    outputs = case.get("outputs", ["scores"])
    settings = dict(settings, input_names=["image"], output_names=outputs)
    if fixed is None and settings["dynamo"]:
        open_dims = {0: torch.export.Dim("batch")}
        if case.get("open_sides"):
            open_dims |= {2: torch.export.Dim("height", min=4), 3: torch.export.Dim("width", min=4)}
        settings["dynamic_shapes"] = (open_dims,)
    elif fixed is None:
        settings["dynamic_axes"] = {value: {0: "batch"} for value in ["image", *outputs]}
    path = os.path.join(out, name + ".onnx")
    torch.onnx.export(model, (example,), path, **settings)
    proto = shrink(path, case)
    with torch.no_grad():
        own = model(torch.from_numpy(fed))
    own = (own[-1] if isinstance(own, tuple) else own).double().numpy()
    scores = own  # ONNX Runtime has no convolution in float64
    if dtype != "float64":
        session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        size = fixed or IMAGES
        padded = np.concatenate([fed, fed[:1].repeat(-IMAGES % size, 0)])
        rows = [session.run([outputs[-1]], {"image": padded[i : i + size]})[0] for i in range(0, len(padded), size)]
        scores = np.concatenate(rows)[:IMAGES].astype(np.float64)
    entry = dict(file=name + ".onnx", shape=shape, classes=scores.shape[1], opset=proto.opset_import[0].version, torch_to_ort=float(abs(own - scores).max()),
                 operators=sorted({node.op_type for node in proto.graph.node}), **{k: case[k] for k in ("scores", "unit", "dtype", "outputs") if k in case})
    print(f"{name:22s} {os.path.getsize(path):7d} bytes  torch-ort {entry['torch_to_ort']:.1e}  {' '.join(entry['operators'])}", flush=True)
    return dict(entry, values=[float(f"{v:.9g}") for v in scores.reshape(-1)])


def resized():
    """torch.nn.functional.interpolate, bilinear, align_corners=False."""
    x = images((2, 5, 7))
    sizes = [(5, 7), (10, 14), (3, 4), (8, 3), (1, 1)]
    y = [F.interpolate(torch.from_numpy(x)[None], size, mode="bilinear", align_corners=False)[0].numpy() for size in sizes]
    return dict(shape=x.shape, cases=[dict(size=size, values=[float(f"{v:.9g}") for v in y.reshape(-1)]) for size, y in zip(sizes, y)])


if __name__ == "__main__":
    out = sys.argv[1]
    cases = [export(out, name) for name in CASES]
    versions = dict(torch=torch.__version__, torchvision=torchvision.__version__, onnx=onnx.__version__, onnxruntime=ort.__version__, numpy=np.__version__)
    with open(os.path.join(out, "scores.json"), "w") as f:
        head = json.dumps(dict(versions=versions, images=IMAGES, seed=1, resized=resized()))
        f.write(head[:-1] + ', "cases": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]}\n")

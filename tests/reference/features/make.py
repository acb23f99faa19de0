"""Reference values of src/classifier/features: features.json beside this file.

Run: nice python make.py   (pip install torch torchvision pytorch-fid; versions are written into the JSON; two minutes on one core)

No public weight file is needed. Every parameter and image comes from the fill formula of the reference README (splitmix64 of the tensor's
name and the seed, rounded to f32); base and scale of each stand in `params` (Inception-v3; `fc` apart, as the two layouts differ in it)
and in the `params` of ../classifiers/{resnet18,resnet50}.json. The networks are those of pytorch_fid.inception.fid_inception_v3, built by
its own code with only the download left out, and torchvision's inception_v3(transform_input=True), resnet18 and resnet50, in float64.

`features`: what the last linear map reads, 9 digits. `logits`: its answers, 12 digits; without the bias for the network ported from
TensorFlow, as the inception score of its authors and torch-fidelity ("logits_unbiased") have them. `mistakes`: how far each typical mistake
moves the features (for those that only move logits, the logits), max |difference| / max |value|.
"""

import json
import math
import os

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from pytorch_fid import inception as fid

HERE = os.path.dirname(os.path.abspath(__file__))
SEED = 1
M = (1 << 64) - 1
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
# Images in [0, 1]: not square, smaller than every network's side; and one that is larger than ResNet's.
SMALL, LARGE = (2, 3, 40, 52), (1, 3, 230, 260)
GAIN = 1.4
torch.set_num_threads(1)


def fill(name, shape, base, scale):
    s0 = 0xCBF29CE484222325
    for byte in name.encode():
        s0 = ((s0 ^ byte) * 0x100000001B3) & M
    with np.errstate(over="ignore"):
        z = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(s0 ^ SEED)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    values = base + scale * (2.0 * ((z >> np.uint64(40)).astype(np.float64) / 2.0**24) - 1.0)
    return torch.from_numpy(values.astype(np.float32).reshape(shape))


def rule(name, shape):
    if name.endswith("num_batches_tracked"):
        return None, None
    if name.endswith("running_mean"):
        return 0.0, 0.1
    if name.endswith("running_var"):
        return 1.0, 0.5
    if name.endswith("bn.weight"):
        return 1.0, 0.1
    if name.endswith("bias"):
        return 0.0, 0.1
    return 0.0, GAIN * math.sqrt(3.0 / np.prod(shape[1:]))


def table(model):
    return [[name, list(t.shape), *rule(name, t.shape)] for name, t in model.state_dict().items()]


def filled(model, rows):
    state = {name: fill(name, shape, base, scale) for name, shape, base, scale in rows if base is not None}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and all(name.endswith("num_batches_tracked") for name in missing), (missing, unexpected)
    return model.double().eval()


def build_fid():
    # fid_inception_v3 patches torchvision's network and then loads the weights it downloads: here, those it already has.
    fid.load_state_dict_from_url = lambda *_, **__: built[0].state_dict()
    make, built = fid._inception_v3, []

    def keep(**arguments):
        built.append(make(**arguments))
        return built[0]

    fid._inception_v3 = keep
    model = fid.fid_inception_v3()
    fid._inception_v3 = make
    return model


def answers(model, x):
    read = []
    hook = model.fc.register_forward_hook(lambda _m, inputs, _o: read.append(inputs[0]))
    with torch.no_grad():
        logits = model(x)
    hook.remove()
    return read[0], logits


def resized(x, side, **options):
    options = {"mode": "bilinear", "align_corners": False, **options}
    return F.interpolate(x.double(), size=(side, side), **options)


def normalised(x):
    mean, std = (torch.tensor(v, dtype=torch.float64).reshape(1, 3, 1, 1) for v in (MEAN, STD))
    return (x - mean) / std


def moved(new, old):
    return float(f"{((new - old).abs().max() / old.abs().max()).item():.2g}")


def digits(values, count):
    return [[float(f"{v:.{count - 1}e}") for v in row] for row in values.tolist()]


def with_eps(model, eps, run):
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    before = norms[0].eps
    for norm in norms:
        norm.eps = eps
    out = run()
    for norm in norms:
        norm.eps = before
    return out


def with_pool(name, replacement, run):
    before = getattr(F, name)
    setattr(F, name, replacement(before))
    out = run()
    setattr(F, name, before)
    return out


def other_pads(before):
    def pool(x, **options):
        options["count_include_pad"] = not options.get("count_include_pad", True)
        return before(x, **options)

    return pool


def max_for_mean(x, **options):
    return F.max_pool2d(x, kernel_size=3, stride=1, padding=1)


def inception_fid(x):
    model = build_fid()
    rows = table(model)
    filled(model, rows)
    run = lambda **resize: answers(model, 2 * resized(x, 299, **resize) - 1)
    features, logits = run()
    # pytorch-fid's own wrapper says the same.
    fid.fid_inception_v3, before = lambda: model, fid.fid_inception_v3
    with torch.no_grad():
        theirs = fid.InceptionV3().double().eval()(x.double())[0].reshape(features.shape)
    fid.fid_inception_v3 = before
    assert (theirs - features).abs().max() < 1e-12
    kept = fid.FIDInceptionE_2.forward
    fid.FIDInceptionE_2.forward = fid.FIDInceptionE_1.forward
    average = run()[0]
    fid.FIDInceptionE_2.forward = kept
    mistakes = {
        "padding counted in the average pools": moved(with_pool("avg_pool2d", other_pads, run)[0], features),
        "average pool in Mixed_7c": moved(average, features),
        "eps 1e-5": moved(with_eps(model, 1e-5, run)[0], features),
        "align_corners": moved(run(align_corners=True)[0], features),
        "values not scaled to [-1, 1]": moved(answers(model, resized(x, 299))[0], features),
        "bias in the logits": moved(logits, logits - model.fc.bias),
    }
    single = answers(model.float(), (2 * resized(x, 299) - 1).float())[0].double()
    unbiased = logits - model.fc.bias.double()
    return rows, dict(features=digits(features, 9), logits=digits(unbiased, 12), mistakes=mistakes,
                      f32_vs_f64=moved(single, features))


def inception_torchvision(x):
    model = torchvision.models.inception_v3(weights=None, init_weights=False, transform_input=True)
    rows = table(model)
    filled(model, rows)
    run = lambda **resize: answers(model, normalised(resized(x, 299, **resize)))
    features, logits = run()
    last = model.Mixed_7c
    inner, pool = last._forward, F.avg_pool2d

    def patched(h):
        F.avg_pool2d = max_for_mean
        out = inner(h)
        F.avg_pool2d = pool
        return out

    last._forward = patched
    maximum = run()[0]
    del last._forward
    mistakes = {
        "padding left out of the average pools": moved(with_pool("avg_pool2d", other_pads, run)[0], features),
        "max pool in Mixed_7c": moved(maximum, features),
        "eps 1e-5": moved(with_eps(model, 1e-5, run)[0], features),
        "align_corners": moved(run(align_corners=True)[0], features),
        "no bias in the logits": moved(logits - model.fc.bias, logits),
    }
    model.transform_input = False
    mistakes["ImageNet's means kept"] = moved(run()[0], features)
    return rows, dict(features=digits(features, 9), logits=digits(logits, 12), mistakes=mistakes)


def resnet(name, make, x):
    with open(os.path.join(HERE, f"../classifiers/{name}.json")) as file:
        described = json.load(file)
    assert described["seed"] == SEED
    model = filled(make(num_classes=described["num_classes"]), described["params"])
    run = lambda **resize: answers(model, normalised(resized(x, 224, **resize)))
    features, logits = run()
    mistakes = {
        "eps 1e-3": moved(with_eps(model, 1e-3, run)[0], features),
        "align_corners": moved(run(align_corners=True)[0], features),
        "not normalised": moved(answers(model, resized(x, 224))[0], features),
    }
    if x.shape[2] > 224:
        mistakes["smoothed where it shrinks"] = moved(run(antialias=True)[0], features)
    return dict(features=digits(features, 9), logits=digits(logits, 12), mistakes=mistakes)


def main():
    small, large = (fill("input", shape, 0.5, 0.5) for shape in (SMALL, LARGE))
    fid_rows, of_fid = inception_fid(small)
    rows, of_torchvision = inception_torchvision(small)
    fc = lambda rows: [row for row in rows if row[0].startswith("fc.")]
    aux = [row for row in rows if row[0].startswith("AuxLogits.")]
    trunk = [row for row in rows if row not in fc(rows) + aux]
    assert trunk == [row for row in fid_rows if row not in fc(fid_rows)]
    image = lambda shape: {"name": "input", "shape": list(shape), "base": 0.5, "scale": 0.5}
    out = dict(
        seed=SEED,
        versions=dict(torch=torch.__version__, torchvision=torchvision.__version__, pytorch_fid="0.3.0", numpy=np.__version__),
        small=image(SMALL), large=image(LARGE),
        inception_fid=of_fid | dict(fc=fc(fid_rows)),
        inception_torchvision=of_torchvision | dict(fc=fc(rows), aux=aux),
        resnet18=resnet("resnet18", torchvision.models.resnet18, small),
        resnet18_large=resnet("resnet18", torchvision.models.resnet18, large),
        resnet50=resnet("resnet50", torchvision.models.resnet50, small),
        params=trunk,
    )
    with open(os.path.join(HERE, "features.json"), "w") as file:
        lines = []
        for key, value in out.items():
            text = json.dumps(value)
            if key == "params":
                text = "[\n" + ",\n".join("  " + json.dumps(row) for row in value) + "\n ]"
            lines.append(f" {json.dumps(key)}: {text}")
        file.write("{\n" + ",\n".join(lines) + "\n}\n")
    for key in ("inception_fid", "inception_torchvision", "resnet18", "resnet18_large", "resnet50"):
        values = np.array(out[key]["features"])
        print(key, "std", values.std(), "max", values.max(), "images apart", np.abs(values[0] - values[-1]).max(), out[key]["mistakes"],
              out[key].get("f32_vs_f64"))


main()

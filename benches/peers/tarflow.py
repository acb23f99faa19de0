"""The reference implementation's sampling loop (apple/ml-tarflow, keys and values cached) on reference configuration 2: the peer of

    RAYON_NUM_THREADS=1 bayescope bench sampling x_model_4_64_4_2_0.05.safetensors --images 32 --device cpu

where that file is a copy of ../shared/reference/tarflow/config2.safetensors. One thread. Needs PyTorch, and the paper's
`transformer_flow.py` (its own licence), whose folder is the argument:

    /tmp/venv/bin/python benches/peers/tarflow.py FOLDER ../shared/reference/tarflow/config2.pth
"""

import argparse
import json
import statistics
import sys
import time

import torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="where transformer_flow.py lies")
    parser.add_argument("checkpoint")
    parser.add_argument("--images", type=int, default=32)
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()
    sys.path.insert(0, arguments.folder)
    from transformer_flow import Model

    torch.set_num_threads(1)
    model = Model(3, 16, 4, 64, 4, 2, True, 10)
    model.load_state_dict(torch.load(arguments.checkpoint, weights_only=True))
    model.eval()
    noise = torch.randn(arguments.images, 16, 48, generator=torch.Generator().manual_seed(1))
    classes = torch.arange(arguments.images) % 10
    times = []
    with torch.no_grad():
        for run in range(arguments.runs + 2):
            started = time.perf_counter()
            model.reverse(noise.clone(), classes)
            if run >= 2:
                times.append(1e3 * (time.perf_counter() - started))
    print(json.dumps({
        "torch": torch.__version__,
        "images": arguments.images,
        "unit": "ms",
        "median": statistics.median(times),
        "min": min(times),
        "max": max(times),
    }))


if __name__ == "__main__":
    main()

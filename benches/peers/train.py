"""Training steps of torchvision's ResNet-18 and of a small ViT in PyTorch: the peers of `bayescope bench train`.

Same networks, sizes and optimizer (AdamW, weight decay 0.01), random images of 3 x 32 x 32, ten classes, on the CPU with as many
threads as it has cores (or --threads). Needs PyTorch and torchvision, which whoever runs it installs:

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch torchvision
    /tmp/venv/bin/python benches/peers/train.py
"""

import argparse
import json
import statistics
import time

import torch
import torchvision
from torch.nn import functional


def small_vit() -> torch.nn.Module:
    """Bayescope's `vit-small`: patches of 4, 6 layers of 192 channels, 3 heads."""
    return torchvision.models.VisionTransformer(
        image_size=32, patch_size=4, num_layers=6, num_heads=3, hidden_dim=192, mlp_dim=768, num_classes=10
    )


def bench(name: str, network: torch.nn.Module, batch: int, runs: int) -> dict:
    network.train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, weight_decay=0.01)
    images = torch.randn(batch, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    labels = torch.arange(batch) % 10
    times = []
    for step in range(runs + 2):
        started = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(network(images), labels)
        loss.backward()
        optimizer.step()
        loss.item()
        if step >= 2:
            times.append(1e3 * (time.perf_counter() - started))
    median = statistics.median(times)
    return {
        "name": name,
        "batch": batch,
        "parameters": sum(p.numel() for p in network.parameters()),
        "unit": "ms",
        "median": median,
        "min": min(times),
        "max": max(times),
        "runs": len(times),
        "images_per_second": batch / (median / 1e3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    networks = {"ResNet-18": torchvision.models.resnet18(num_classes=10), "ViT-small": small_vit()}
    benches = [bench(name, network, arguments.batch, arguments.runs) for name, network in networks.items()]
    print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads(), "benches": benches}, indent=2))


if __name__ == "__main__":
    main()

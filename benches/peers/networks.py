"""The classifiers of compare.py by PyTorch."""

import torch
import torchvision
from torch.nn import functional

from flows import noise

BATCH = 128


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



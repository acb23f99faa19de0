"""A small network in PyTorch on an endless stream. Meanwhile: bayescope watch torch-run."""
import torch
import bayescope
import bayescope.torch

world = bayescope.World("mnist", target="5%")
run = bayescope.Run("torch-run", world)
stream = bayescope.torch.Stream(world, 128, seed=1)
dims = torch.Size(world.shape).numel()
network = torch.nn.Sequential(
    torch.nn.Flatten(), torch.nn.Linear(dims, 256), torch.nn.ReLU(), torch.nn.Linear(256, len(world.classes))
)
optimiser = torch.optim.Adam(network.parameters(), 1e-3)
for step, (x, y) in zip(range(1, 2001), stream):
    loss = torch.nn.functional.cross_entropy(network(x), y)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 20 == 0:
        bayescope.torch.log(run, step, network, images=step * 128, train_loss=loss.item())
run.finish()

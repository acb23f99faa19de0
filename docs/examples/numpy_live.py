"""Softmax regression in NumPy on an endless stream. Meanwhile: bayescope watch myrun, or open myrun in the window.
Kill it and start it again: it goes on at its last checkpoint."""
import os
import numpy as np
import bayescope

world = bayescope.World("mnist", target="5%")
run, stream = bayescope.Run("myrun", world), world.stream(64, seed=1)
flat = lambda x: np.c_[x.reshape(len(x), -1), np.ones(len(x))]
test, w = flat(run.test_images), np.zeros((np.prod(world.shape) + 1, len(world.classes)))
if os.path.exists("myrun/checkpoint.npz"):
    kept = np.load("myrun/checkpoint.npz")
    w, stream.position = kept["w"], int(kept["step"])
while stream.position < 2000:
    x, y, *_ = next(stream)
    x, step = flat(x), stream.position
    q = np.exp(x @ w - (x @ w).max(1, keepdims=True))
    q /= q.sum(1, keepdims=True)
    loss = -np.log(q[np.arange(len(y)), y]).mean()
    w -= 0.02 * x.T @ (q - np.eye(len(world.classes))[y]) / len(y)
    if step % 20 == 0:
        run.log(step, test @ w, images=step * 64, train_loss=loss)
        np.savez("myrun/next.npz", step=step, w=w)
        os.replace("myrun/next.npz", "myrun/checkpoint.npz")
run.finish()

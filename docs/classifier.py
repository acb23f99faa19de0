"""A classifier that knows nothing of Bayescope: one hidden layer, NumPy alone.

    python3 docs/classifier.py hard mine.npz

reads hard/train.npz, learns from the images and their labels, and writes what it says of the images of hard/test.npz.
"""

import sys

import numpy as np

folder, out = sys.argv[1:3]
train, test = np.load(f"{folder}/train.npz"), np.load(f"{folder}/test.npz")
x, y = train["x"].reshape(len(train["x"]), -1), train["y"]
pixels, hidden, classes = x.shape[1], 256, train["posterior"].shape[1]

draw = np.random.default_rng(0)
# `x` holds noise outside the range of pixels; every network scales its input somehow, this one by mean and deviation.
mean, std = x.mean(), x.std()
weights = [draw.normal(0, (2 / pixels) ** 0.5, (pixels, hidden)), np.zeros(hidden)]
weights += [draw.normal(0, (1 / hidden) ** 0.5, (hidden, classes)), np.zeros(classes)]
speeds = [np.zeros_like(w) for w in weights]


def answer(x):
    inside = np.maximum((x - mean) / std @ weights[0] + weights[1], 0)
    logits = inside @ weights[2] + weights[3]
    return inside, logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)


for epoch in range(12):
    for batch in np.array_split(draw.permutation(len(x)), len(x) // 100):
        inside, log_q = answer(x[batch])
        error = (np.exp(log_q) - np.eye(classes)[y[batch]]) / len(batch)
        back = error @ weights[2].T * (inside > 0)
        slopes = [((x[batch] - mean) / std).T @ back, back.sum(0), inside.T @ error, error.sum(0)]
        for weight, speed, slope in zip(weights, speeds, slopes):
            speed *= 0.9
            speed -= 0.02 * slope
            weight += speed

np.savez(out, log_probs=answer(test["x"].reshape(len(test["x"]), -1))[1])

"""Reference values of src/measure/fidelity: fidelity.json beside this file.

Run: python make.py   (pip install numpy scipy scikit-learn mpmath; versions are written into the JSON)

Inputs come from the fill formula of the reference README (splitmix64 of the tensor's name and the seed, rounded to f32), so that the JSON
holds numbers only. FID is computed as pytorch-fid 0.3.0 does (numpy.cov, scipy.linalg.sqrtm of the product, eps 1e-6 where it is not
finite) and, since sqrtm of a singular product is off by 1e-7 and more, also with 60 digits by mpmath. PRDC follows the `prdc` package 0.2
(scikit-learn pairwise distances, numpy.argpartition), KID torch-fidelity's polynomial_mmd, the inception score torch-fidelity's
isc_features_to_metric without shuffling, Z_U and C_T data_copying_tests.py of casey-meehan/data-copying (without its continuity
correction, which its paper lacks), the KL scipy.special.rel_entr.
"""

import json
import os

import mpmath
import numpy as np
import scipy
import sklearn
from scipy import linalg
from scipy.special import log_softmax, rel_entr
from scipy.stats import mannwhitneyu
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

SEED = 1
M = (1 << 64) - 1


def fill(name, shape, base=0.0, scale=1.0):
    s = 0xCBF29CE484222325
    for byte in name.encode():
        s = ((s ^ byte) * 0x100000001B3) & M
    s ^= SEED
    out = []
    for _ in range(int(np.prod(shape))):
        s = (s + 0x9E3779B97F4A7C15) & M
        z = s
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M
        z ^= z >> 31
        out.append(base + scale * (2.0 * ((z >> 40) / 2.0**24) - 1.0))
    return np.array(out).astype(np.float32).reshape(shape)


def pytorch_fid(mu1, sigma1, mu2, sigma2, eps=1e-6):
    diff = mu1 - mu2
    covmean = linalg.sqrtm(sigma1.dot(sigma2))
    if not np.isfinite(covmean).all():
        offset = np.eye(sigma1.shape[0]) * eps
        covmean = linalg.sqrtm((sigma1 + offset).dot(sigma2 + offset))
    if np.iscomplexobj(covmean):
        covmean = covmean.real
    return float(diff.dot(diff) + np.trace(sigma1) + np.trace(sigma2) - 2 * np.trace(covmean))


def exact_fid(x, y):
    """60 digits: tr (S1 S2)^1/2 is the nuclear norm of Y1 Y2^T / sqrt((n-1)(m-1)), Y the centred features."""
    mpmath.mp.dps = 60
    x, y = (mpmath.matrix(v.astype(np.float64).tolist()) for v in (x, y))

    def centred(v):
        mean = [mpmath.fsum(v[i, k] for i in range(v.rows)) / v.rows for k in range(v.cols)]
        return mpmath.matrix(v.rows, v.cols) + mpmath.matrix(
            [[v[i, k] - mean[k] for k in range(v.cols)] for i in range(v.rows)]), mean

    (x, mx), (y, my) = centred(x), centred(y)
    sx, sy = x.T * x / (x.rows - 1), y.T * y / (y.rows - 1)
    # Eigenvalues of the smallest product with the same ones: they are squares of the singular values.
    small = min(x.rows, y.rows, x.cols)
    if small == x.cols:
        root = mpmath.cholesky(sx) if x.rows > x.cols else None
        product = root.T * sy * root
    elif small == x.rows:
        product = x * sy * x.T / (x.rows - 1)
    else:
        product = y * sx * y.T / (y.rows - 1)
    values = mpmath.eigsy(product, eigvals_only=True)
    trace = mpmath.fsum(mpmath.sqrt(v) for v in values if v > mpmath.mpf(10) ** -40)
    diff = mpmath.fsum((a - b) ** 2 for a, b in zip(mx, my))
    d = x.cols
    return float(diff + mpmath.fsum(sx[i, i] + sy[i, i] for i in range(d)) - 2 * trace)


def prdc(real, fake, k):
    def radii(x):
        d = pairwise_distances(x, metric="euclidean")
        near = np.argpartition(d, k + 1, axis=-1)[..., : k + 1]
        return np.take_along_axis(d, near, axis=-1).max(axis=-1)

    r, f, d = radii(real), radii(fake), pairwise_distances(real, fake, metric="euclidean")
    return dict(
        precision=float((d < r[:, None]).any(axis=0).mean()),
        recall=float((d < f[None, :]).any(axis=1).mean()),
        density=float((1.0 / k) * (d < r[:, None]).sum(axis=0).mean()),
        coverage=float((d.min(axis=1) < r).mean()),
    )


def polynomial_mmd(x, y):
    kernel = lambda a, b: (a @ b.T / a.shape[1] + 1.0) ** 3
    xx, yy, xy = kernel(x, x), kernel(y, y), kernel(x, y)
    n, m = len(x), len(y)
    return float((xx.sum() - np.trace(xx)) / (n * (n - 1)) + (yy.sum() - np.trace(yy)) / (m * (m - 1)) - 2 * xy.mean())


def inception_score(logits, splits):
    logits = logits.astype(np.float64)
    log_p = log_softmax(logits, axis=1)
    p, n, scores = np.exp(log_p), len(logits), []
    for i in range(splits):
        a, b = i * n // splits, (i + 1) * n // splits
        kl = p[a:b] * (log_p[a:b] - np.log(p[a:b].mean(axis=0, keepdims=True)))
        scores.append(float(np.exp(kl.sum(axis=1).mean())))
    return dict(mean=float(np.mean(scores)), std=float(np.std(scores)))


def copying(test, test_cells, made, made_cells, train, train_cells, tau):
    zs, weights = [], []
    for c in range(train_cells.max() + 1):
        p, q, t = test[test_cells == c], made[made_cells == c], train[train_cells == c]
        nearest = NearestNeighbors(n_neighbors=1).fit(t)
        lq, lp = nearest.kneighbors(q)[0].ravel(), nearest.kneighbors(p)[0].ravel()
        n, m = len(lp), len(lq)
        u, _ = mannwhitneyu(lq, lp, alternative="less")
        zs.append(float((u - n * m / 2) / np.sqrt(n * m * (n + m + 1) / 12)))
        weights.append(len(p) / len(test) if m / len(made) > tau else 0.0)
    return dict(z=zs, c_t=float(np.dot(weights, zs) / np.sum(weights)))


def main():
    cases = []
    # Dimensions, real and generated images; n < d leaves the covariances singular.
    for name, d, n, m in [("full", 12, 60, 50), ("one_singular", 24, 16, 40), ("both_singular", 32, 18, 14), ("wide", 40, 200, 150)]:
        x = fill(f"{name}.real", (n, d), 0.5, 1.0)
        y = fill(f"{name}.generated", (m, d), 0.6, 0.9)
        wx, wy = x.astype(np.float64), y.astype(np.float64)
        nearest, index = NearestNeighbors(n_neighbors=2).fit(wx).kneighbors(wy)
        cells = np.arange(n) % 2, np.arange(m) % 2
        spread = lambda v: np.trace(np.cov(v, rowvar=False))
        apart = lambda v: pairwise_distances(v)[np.triu_indices(len(v), 1)].mean()
        half = m // 2
        cases.append(dict(
            name=name, d=d, n=n, m=m,
            mean_first=float(wx.mean(axis=0)[0]), covariance_first_two=float(np.cov(wx, rowvar=False)[0, 1]),
            fid_pytorch=pytorch_fid(wx.mean(axis=0), np.cov(wx, rowvar=False), wy.mean(axis=0), np.cov(wy, rowvar=False)),
            fid=exact_fid(x, y),
            mmd2=polynomial_mmd(wx, wy),
            prdc={str(k): prdc(wx, wy, k) for k in (1, 3, 5)},
            nearest=nearest[:, 0].tolist(), second=nearest[:, 1].tolist(), index=index[:, 0].tolist(),
            # The later half of the generated images stands for held-out ones.
            copying=copying(wy[half:], cells[1][half:], wy[:half], cells[1][:half], wx, cells[0], 0.1),
            variance_ratio=float(spread(wy) / spread(wx)), distance_ratio=float(apart(wy) / apart(wx)),
            percentile=float(np.percentile(nearest[:, 0], 90)),
        ))
    logits = fill("logits", (103, 20), 0.0, 6.0)
    shifted = logits + fill("shift", (103, 20), 0.0, 1e-3)
    p, q = (np.exp(log_softmax(v.astype(np.float64), axis=1)) for v in (logits, shifted))
    out = dict(
        seed=SEED,
        versions=dict(numpy=np.__version__, scipy=scipy.__version__, sklearn=sklearn.__version__, mpmath=mpmath.__version__),
        cases=cases,
        inception=dict(n=103, classes=20, scale=6.0, splits={str(s): inception_score(logits, s) for s in (2, 10)}),
        stability=dict(scale=1e-3, kl=float(rel_entr(p, q).sum(axis=1).mean())),
    )
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "fidelity.json"), "w") as file:
        json.dump(out, file, indent=1)
        file.write("\n")


main()

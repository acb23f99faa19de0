"""A small world by formula, one model's predictions in the files that programs write, and the figures they must give.

    python3 -m venv v && v/bin/pip install numpy pandas pyarrow scipy && v/bin/python make.py

Every figure is computed here from the definitions with numpy, independent of the crate. expected.json names the versions.
"""
import hashlib, json, pathlib
import numpy as np, pandas as pd, pyarrow as pa, pyarrow.parquet as pq, scipy
from scipy.optimize import minimize_scalar

HERE = pathlib.Path(__file__).parent
DATA = HERE / "dataset"
DATA.mkdir(exist_ok=True)
N, K, NAMES = 120, 4, ["cat", "dog", "frog", "horse"]
PRIOR, T, TAU = np.array([0.4, 0.3, 0.2, 0.1]), 1.5, 0.9


def log_softmax(z):
    z = z - z.max(1, keepdims=True)
    return z - np.log(np.exp(z).sum(1, keepdims=True))


i, k = np.arange(N)[:, None], np.arange(K)[None, :]
logp = -1000.0 + 3.0 * np.sin(0.7 * i * (k + 1) + 0.3 * k * k) + 0.5 * np.cos(1.9 * i)
log_p = log_softmax((logp + np.log(PRIOR)) / T)
p = np.exp(log_p)
u = (np.arange(N) * 0.6180339887498949 + 0.1) % 1.0
y = (u[:, None] > np.cumsum(p, 1)).sum(1).clip(0, K - 1)
logits = 1.3 * log_p + 0.8 * np.sin(2.1 * i + 5.3 * k) + 7.0

rng_x = (np.arange(N * 4, dtype=np.float32) / 7).reshape(N, 1, 2, 2)
np.savez(DATA / "test.npz", x=rng_x, y=y.astype(np.int64), posterior=p.astype(np.float32), logp=logp,
         aleatoric=-(p * log_p).sum(1))
sha = hashlib.sha256((DATA / "test.npz").read_bytes()).hexdigest()
WORLD = hashlib.sha256(b"world").hexdigest()
(DATA / "dataset.json").write_text(json.dumps(dict(
    weights_sha256=WORLD, tau=TAU, prior=PRIOR.tolist(), smoothing=T, class_names=NAMES, badge="exact",
    files={"test.npz": sha}), indent=1))


def figures(log_q, p=p):
    log_p = np.log(p)
    q = np.exp(log_q)
    d, b, n = log_q.argmax(1), p.argmax(1), np.arange(N)
    conf, exp, best = q.max(1), p[n, d], p.max(1)
    bins = np.clip(np.ceil(conf * 15).astype(int), 1, 15) - 1
    ece = lambda hit: sum(abs((conf - hit)[bins == j].sum()) for j in range(15)) / N
    tail = np.array([1.0])
    for e in exp:
        tail = np.append(tail * (1 - e), 0) + np.append(0, tail * e)
    hits = int((d == y).sum())
    drawn = log_q[n, y].sum()
    mean = (p * log_q).sum(1)
    var = ((p * log_q**2).sum(1) - mean**2).sum()
    f = lambda t: np.log((p * np.exp(t * log_q)).sum(1)).sum() - t * drawn
    opt = minimize_scalar(f, bounds=(0, 50), method="bounded", options=dict(xatol=1e-10))
    kl = (p * (log_p - log_q)).sum(1)
    odds = np.sort(log_p, 1)
    return dict(
        n=N, cross_entropy=-(p * log_q).sum(1).mean(), aleatoric=-(p * log_p).sum(1).mean(), epistemic=kl.mean(),
        error=1 - hits / N, bayes_error=1 - best.mean(), gap=(best - exp).mean(), ece=ece(d == y),
        exact_calibration_error=ece(exp), expected_error=1 - exp.mean(),
        label_gap=((d != y).astype(float) - (b != y)).mean(), bayes_label_error=(b != y).mean(),
        nll=-log_q[n, y].mean(), hits=hits, hits_p=tail[hits:].sum(),
        likelihood_z=(drawn - mean.sum()) / np.sqrt(var),
        likelihood_p=1.0 if drawn <= mean.sum() else float(np.exp(opt.fun)),
        agreement=(p * q).sum(1).mean(), shuffled=float(p.mean(0) @ q.mean(0)),
        class_gap=[(best - exp)[y == c].mean() for c in range(K)], class_kl=[kl[y == c].mean() for c in range(K)],
        worst_kl=[int(j) for j in np.argsort(-kl, kind="stable")[:5]])


log_q = log_softmax(logits)
q = np.exp(log_q)
q64 = q / q.sum(1, keepdims=True)
expected = {}
ids = np.arange(N)
perm = (ids * 37 + 11) % N  # 37 and 120 have no common factor

np.savez(HERE / "logits.npz", logits=logits[perm], id=ids[perm], weights_sha256=WORLD, dataset_sha256=sha)
expected["logits.npz"] = figures(log_q)

single = q.astype(np.float32)
np.save(HERE / "probs.npy", np.asfortranarray(single))
s = single.astype(np.float64)
expected["probs.npy"] = figures(np.log(s / s.sum(1, keepdims=True)))

half = log_q.astype(np.float16)
np.savez_compressed(HERE / "half.npz", log_probs=half, ids=np.array([f"test/{j:06d}" for j in ids]))
expected["half.npz"] = figures(log_softmax(half.astype(np.float64)))

columns = [2, 0, 3, 1]
table = pd.DataFrame(q64[perm][:, columns], columns=[NAMES[c] for c in columns])
table.insert(0, "filename", [f"{NAMES[y[j]]}/{j:06d}.png" for j in perm])
table["label"] = y[perm]
table.to_csv(HERE / "names.csv", index=False)
expected["names.csv"] = figures(log_q)

pd.DataFrame(q64, columns=[f"p{c}" for c in range(K)]).iloc[perm].to_csv(HERE / "pandas_index.csv")
expected["pandas_index.csv"] = figures(log_q)

np.savetxt(HERE / "plain.csv", logits, delimiter=";", fmt="%.17g")
expected["plain.csv"] = figures(log_q)

frame = pd.DataFrame(logits[:, ::-1], columns=[f"class_{c}" for c in range(K)][::-1])
frame["id"] = ids
extra = frame.tail(3).assign(id=[500, 501, 502])
pd.concat([frame, extra]).to_parquet(HERE / "columns.parquet", index=False)
expected["columns.parquet"] = figures(log_q)

frame.set_index("id").iloc[perm].to_parquet(HERE / "frame_index.parquet")
expected["frame_index.parquet"] = figures(log_q)

pq.write_table(pa.table({"path": [f"{j:06d}.png" for j in perm], "probs": pa.array(list(single[perm]), pa.list_(pa.float32()))})
               .replace_schema_metadata({"weights_sha256": WORLD}), HERE / "list.parquet")
expected["list.parquet"] = expected["probs.npy"]

# A world without prior and T in its manifest: stored posteriors.
stored = p.astype(np.float32).astype(np.float64)
expected["stored"] = figures(log_q, stored / stored.sum(1, keepdims=True))
expected["versions"] = dict(numpy=np.__version__, pandas=pd.__version__, pyarrow=pa.__version__, scipy=scipy.__version__)
(HERE / "expected.json").write_text(json.dumps(expected, indent=1))

"""Train a classifier on an exported dataset and come back with its predictions.

    bayescope export mnist --train 5000 --test 2000 --tau 1.15 --out digits
    python3 docs/judge.py digits predictions.npz
    bayescope evaluate digits --predictions predictions.npz --report report
"""

import sys

import numpy as np
from sklearn.linear_model import LogisticRegression

folder, out = sys.argv[1:3]
train, test = np.load(f"{folder}/train.npz"), np.load(f"{folder}/test.npz")

# Never show a model the arrays posterior, logp or aleatoric: they are the truth it is judged against.
model = LogisticRegression(C=0.01, max_iter=200)
model.fit(train["x"].reshape(len(train["x"]), -1), train["y"])

# One row an image in the order of the file, one column a class: logits or probabilities, Bayescope sees which.
log_q = np.full((len(test["x"]), test["posterior"].shape[1]), -np.inf)
log_q[:, model.classes_] = model.predict_log_proba(test["x"].reshape(len(test["x"]), -1))
np.savez(out, log_probs=log_q)

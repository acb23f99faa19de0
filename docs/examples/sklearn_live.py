"""scikit-learn's partial_fit on an endless stream. Meanwhile: bayescope watch sklearn-run."""
import numpy as np
from sklearn.linear_model import SGDClassifier
import bayescope

world = bayescope.World("mnist", target="5%")
run = bayescope.Run("sklearn-run", world, predictions="probs")
model, classes = SGDClassifier(loss="log_loss", alpha=1e-3), np.arange(len(world.classes))
test = run.test_images.reshape(len(run.test_images), -1)
for step, (x, y, *_) in zip(range(1, 501), world.stream(128, seed=1)):
    model.partial_fit(x.reshape(len(x), -1), y, classes=classes)
    if step % 10 == 0:
        run.log(step, probs=model.predict_proba(test), images=step * 128)
run.finish()

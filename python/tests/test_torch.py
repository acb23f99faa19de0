"""Logging from PyTorch and Lightning leaves the training as it is."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
logging = pytest.importorskip("bayescope.torch")


def recorded():
    """A run that keeps what is logged."""
    kept = []
    images = np.zeros((3, 1, 4, 4), dtype=np.float32)
    return SimpleNamespace(test_images=images, log=lambda step, logits, **facts: kept.append((step, logits, facts))), kept


def network():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.BatchNorm1d(16), torch.nn.Dropout(), torch.nn.Linear(16, 2))


@pytest.mark.parametrize("frozen", [[], [1], [0, 1, 2, 3]])
def test_every_module_keeps_its_mode(frozen):
    run, kept = recorded()
    model = network().train()
    for place in frozen:
        model[place].eval()
    before = [module.training for module in model.modules()]
    logging.log(run, 7, model)
    assert [module.training for module in model.modules()] == before
    assert kept[0][0] == 7 and kept[0][1].shape == (3, 2)
    # Without gradients, and without the running statistics of a batch of zeros.
    assert not kept[0][1].requires_grad and model[1].num_batches_tracked == 0


def test_a_mode_is_kept_when_the_network_fails():
    run, _ = recorded()
    model = torch.nn.Sequential(torch.nn.Linear(5, 2)).train()
    with pytest.raises(RuntimeError):
        logging.log(run, 1, model)
    assert model.training and model[0].training


@pytest.mark.skipif(not hasattr(logging, "LightningCallback"), reason="no Lightning")
def test_a_loss_of_accumulated_gradients_is_that_of_a_batch_and_parts_of_an_epoch_count():
    run, kept = recorded()
    model = network()
    model.automatic_optimization = True
    trainer = SimpleNamespace(is_global_zero=True, global_step=4, current_epoch=2, accumulate_grad_batches=4)
    trainer.num_training_batches = 8
    callback = logging.LightningCallback(run, every=4)
    callback.on_train_batch_end(trainer, model, {"loss": torch.tensor(0.2)}, None, 3)
    assert kept[0][2]["train_loss"] == pytest.approx(0.8) and kept[0][2]["epoch"] == 2.5
    # An endless stream.
    trainer.global_step, trainer.num_training_batches = 8, float("inf")
    callback.on_train_batch_end(trainer, model, None, None, 7)
    assert kept[1][2]["epoch"] == 2

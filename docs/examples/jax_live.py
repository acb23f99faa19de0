"""A linear classifier in JAX on an endless stream. Meanwhile: bayescope watch jax-run."""
import jax
import jax.numpy as jnp
import bayescope

world = bayescope.World("mnist", target="5%")
run = bayescope.Run("jax-run", world)
flat = lambda x: jnp.asarray(x).reshape(len(x), -1)
test = flat(run.test_images)
w = jnp.zeros((test.shape[1], len(world.classes)))


def loss_of(w, x, y):
    log_q = jax.nn.log_softmax(x @ w)
    return -jnp.take_along_axis(log_q, y[:, None], axis=1).mean()


step_of = jax.jit(jax.value_and_grad(loss_of))
for step, (x, y, *_) in zip(range(1, 1001), world.stream(128, seed=1)):
    loss, slope = step_of(w, flat(x), jnp.asarray(y))
    w -= 0.02 * slope
    if step % 20 == 0:
        run.log(step, test @ w, images=step * 128, train_loss=float(loss))
run.finish()

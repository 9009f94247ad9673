"""Exact draws of a process, step by step through its state space: time linear in the number of points."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, PRNGKeyArray

from .._linalg import precise, stable_cholesky
from ._system import LinearSystem


@partial(precise, static_argnames="num_samples")
def sample_markov(
    system: LinearSystem, key: PRNGKeyArray, t: Float[Array, " N"], num_samples: int
) -> tuple[Float[Array, "S N"], Float[Array, "S N"]]:
    """Walk the times in order: `s(t + r) = e^{Ar} s(t) + noise`."""
    order = jnp.argsort(t)
    gaps = jnp.diff(t[order], prepend=t[order][:1])
    root, steps = system.root, jnp.moveaxis(system.state_after(system.motion(gaps)), -1, 0)
    noise_roots = _noise_roots(system, gaps, steps)
    first, rest = jax.random.split(key)
    noise = jax.random.normal(rest, (t.size, num_samples, noise_roots.shape[2]), t.dtype)

    def walk(state: Float[Array, "S d"], step: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        transition, noise_root, noise = step
        state = state @ transition.T + noise @ noise_root.T
        return state, state

    start = jax.random.normal(first, (num_samples, root.shape[0]), t.dtype) @ root.T
    _, states = jax.lax.scan(walk, start, (steps, noise_roots, noise))
    states = jnp.zeros_like(states).at[order].set(states)
    force = states[:, :, 0].T
    return states[:, :, system.degree + 1].T if system.direct is None else system.direct * force, force


def _noise_roots(system: LinearSystem, gaps: Float[Array, " N"], steps: Float[Array, "N d d"]) -> Float[Array, "N d k"]:
    """Roots of the covariance of the noise that enters over each gap, `P - e^{Ar} P e^{A^T r}`.

    Over a short gap that difference is lost in rounding (a smooth force moves as little as `r^{p+1/2}`), so there the
    integral `∫_0^r m(s) m(s)^T ds` over the answers m to an impulse is taken by Gauss's rule, whose terms are a root
    already.
    """
    nodes, weights = (jnp.asarray(x, gaps.dtype) / 2 for x in np.polynomial.legendre.leggauss(10))
    within = system.motion((gaps[:, None] * (nodes + 0.5)[None, :]).ravel())
    impulses = system.state_after(within)[:, system.degree]
    impulses = jnp.moveaxis(impulses.reshape(-1, gaps.size, nodes.size), 0, 1)
    short = impulses * system.noise_scale * system.decay * jnp.sqrt(gaps[:, None, None] * weights[None, None, :])
    moved, P = steps @ system.root, system.root @ system.root.T
    long = jax.vmap(stable_cholesky, (0, None))(P[None] - moved @ jnp.swapaxes(moved, 1, 2), jnp.diag(P))
    size = max(P.shape[0], nodes.size)
    short, long = (jnp.pad(x, ((0, 0), (0, 0), (0, size - x.shape[2]))) for x in (short, long))
    return jnp.where((gaps * system.speed < 1)[:, None, None], short, long)

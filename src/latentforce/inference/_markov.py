"""Exact inference in time linear in N: a process with a state space has a quasiseparable covariance."""

import math

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float
from tinygp.solvers.quasisep.core import DiagQSM, StrictLowerTriQSM, SymmQSM

from ..dynamics._process import Process


def log_likelihood(
    process: Process, t: Float[Array, " N"], y: Float[Array, " N"], noise: Float[Array, ""]
) -> Float[Array, ""]:
    """`log N(y; 0, K + noise I)` for increasing times, K the output's covariance."""
    root = quasiseparable(process, t, noise).cholesky()
    white = root.solve(y)
    return -jnp.sum(white * white) / 2 - jnp.sum(jnp.log(root.diag.d)) - y.size * math.log(2 * math.pi) / 2


def quasiseparable(process: Process, t: Float[Array, " N"], noise: Float[Array, ""]) -> SymmQSM:
    """`K + noise I` as products of the state's transitions from each time to the next."""
    system = process.system(t.dtype)
    moved = system.motion(jnp.diff(t, prepend=t[:1]))
    transitions = jnp.moveaxis(system.state_after(moved), -1, 0)
    p1, d = system.degree + 1, system.root.shape[0]
    row = (
        jnp.zeros(d, t.dtype).at[p1].set(1.0) if system.direct is None else system.direct * jnp.eye(d, dtype=t.dtype)[0]
    )
    shape = (t.size, d)
    stationary = system.root @ (system.root.T @ row)
    return SymmQSM(
        diag=DiagQSM(d=jnp.broadcast_to(row @ stationary + noise, t.shape)),
        lower=StrictLowerTriQSM(
            p=jnp.einsum("i,nij->nj", row, transitions),
            q=jnp.broadcast_to(stationary, shape),
            a=transitions,
        ),
    )

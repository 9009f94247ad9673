"""Several outputs of one force: what their filters' states have in common.

Given the force's state, the state of filter d is `R_d^{p+1} y_d` times the noise's scale, where `y_d` is the same
filter pushed by white noise. The y of all outputs are pushed by the same noise, so
`F_d V_de + V_de F_e^T + g_d g_e^T = 0`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from .._linalg import precise, stable_cholesky
from ._system import LinearSystem, force_constants


class SharedState(eqx.Module):
    """The stationary state of R systems with a common force, whitened: `state_d = root[d] @ e`, `e ~ N(0, I)`.

    `e` begins with the p+1 numbers of the force's state; the rest is the filters'.
    """

    root: Float[Array, "R d c"]
    gramian_root: Float[Array, "Rn Rn"]  # of all y_d together
    gramian: Float[Array, "R n R n"]

    def output_root(self, systems: LinearSystem) -> Float[Array, "R c"]:
        """`output_d = output_root[d] @ e`: its Gram matrix is the covariance of the outputs at one time."""
        if systems.direct is not None:
            return systems.direct[:, None] * self.root[:, 0]
        return self.root[:, systems.degree + 1]


@precise
def shared_state(systems: LinearSystem) -> SharedState:
    """See `SharedState`. `systems` leads with an axis of R outputs, with equal forces."""
    p1, n = systems.degree + 1, systems.order
    if n == 0:
        empty = jnp.zeros((0, 0), systems.decay.dtype)
        num = systems.decay.shape[0]
        return SharedState(systems.root, empty, jnp.zeros((num, 0, num, 0), systems.decay.dtype))
    pairwise = jax.vmap(jax.vmap(_common_gramian, (None, None, 0, 0)), (0, 0, None, None))
    gramian = jnp.moveaxis(pairwise(systems.matrix, systems.push, systems.matrix, systems.push), 1, 2)
    num = gramian.shape[0]
    joint = gramian.reshape(num * n, num * n)
    gramian_root = stable_cholesky((joint + joint.T) / 2)
    residual = _discount(systems) @ gramian_root.reshape(num, n, num * n)
    filters = jnp.concatenate([systems.root[:, p1:, :p1], systems.noise_scale[:, None, None] * residual], axis=2)
    force = jnp.pad(systems.root[:, :p1, :p1], ((0, 0), (0, 0), (0, num * n)))
    return SharedState(jnp.concatenate([force, filters], axis=1), gramian_root, gramian)


def outputs_before(systems: LinearSystem, state: SharedState, r: Float[Array, " N"]) -> Float[Array, "R c N"]:
    """`Cov[e, output_d(t - r)]` for the whitened joint state at time t (one system: `LinearSystem.output_before`)."""
    shifts = jnp.asarray(force_constants(systems.degree).whitened_shifts, r.dtype)
    moved = jax.vmap(lambda system: system.motion(r))(systems)
    root = jax.vmap(lambda system: system.output_root[: systems.degree + 1])(systems)
    explained = jnp.einsum("kij,dj->dik", shifts, root) @ moved.powers
    if systems.order == 0:
        return explained
    memory = jax.vmap(lambda system: system.output_memory)(systems)[:, ::-1]
    # axes: d the output, e the filter whose state is looked at, i and j its components, k powers, n times
    residual = jnp.einsum("dk,ekin->dein", systems.decay[:, None] * memory, moved.forced)
    if systems.direct is None:
        correlated = jnp.einsum("eidj,dj->dei", state.gramian, _discount(systems)[:, 0])
        residual = residual + jnp.einsum("eijn,dej->dein", moved.free, correlated)
    residual = residual.reshape(residual.shape[0], -1, r.size)
    whitened = jax.vmap(lambda b: jax.scipy.linalg.solve_triangular(state.gramian_root, b, lower=True))(residual)
    return jnp.concatenate([explained, systems.noise_scale[:, None, None] * whitened], axis=1)


def _discount(systems: LinearSystem) -> Float[Array, "R n n"]:
    """`R^{p+1}` of each system."""
    return jax.vmap(lambda root, residual: jax.scipy.linalg.solve_triangular(root.T, residual.T, lower=False).T)(
        systems.gramian_root, systems.residual_root
    )


def _common_gramian(
    F1: Float[Array, "n n"], g1: Float[Array, " n"], F2: Float[Array, "n n"], g2: Float[Array, " n"]
) -> Float[Array, "n n"]:
    """V with `F1 V + V F2^T + g1 g2^T = 0`."""
    n = g1.size
    if n == 1:
        return -(g1[:, None] * g2[None, :]) / (F1 + F2)
    eye = jnp.eye(n, dtype=F1.dtype)
    operator = jnp.kron(F1, eye) + jnp.kron(eye, F2)
    return jnp.linalg.solve(operator, -(g1[:, None] * g2[None, :]).reshape(-1)).reshape(n, n)

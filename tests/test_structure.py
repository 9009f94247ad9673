"""Cost by construction: what the compiled programs of the Fourier families may contain."""

import jax
import jax.numpy as jnp
import pytest

import cases
import latentforce as lf

N, M = 1009, 101
FACTORISATIONS = {
    "cholesky",
    "lu",
    "eigh",
    "eig",
    "qr",
    "svd",
    "triangular_solve",
    "householder_product",
    "schur",
    "custom_linear_solve",
}


def equations(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn
        for parameter in eqn.params.values():
            for inner in parameter if isinstance(parameter, list | tuple) else [parameter]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from equations(inner)


@pytest.mark.parametrize("name", ["identity", "first-order 10", "under-damped", "repeated pole"])
@pytest.mark.parametrize("family", [lf.HarmonicFourier, lf.DrivenFourier, lf.RandomFourier])
@pytest.mark.parametrize("gradient", [False, True])
def test_whitening_is_linear_in_points_and_features(family, name, gradient, x64):
    """No factorisation of anything that grows with N or F; and no product of matrices that are both wide."""
    process = cases.process(2.5, name)
    features = family(M) if family is lf.RandomFourier else family(M, (0.0, 1.0))

    def total(process, t):
        return jnp.sum(jnp.sin(features.whitened(process, t)))

    function = jax.grad(total, argnums=(0, 1)) if gradient else total
    jaxpr = jax.make_jaxpr(function)(process, jnp.linspace(0.0, 1.0, N)).jaxpr
    small, wide = 40, max(2 * M + 20, 500)  # (p + 1 + order)^2; F, or the steps of the doubling that a gradient keeps
    found = list(equations(jaxpr))
    assert len(found) > 30
    for eqn in found:
        sizes = [max(var.aval.shape, default=0) for var in eqn.invars if hasattr(var.aval, "shape")]
        if eqn.primitive.name in FACTORISATIONS:
            assert max(sizes) <= small, eqn
        if eqn.primitive.name == "dot_general":
            assert flops(eqn) <= N * wide * 2 * (3 + 3 + 3), eqn
        for var in eqn.outvars:
            size = 1
            for length in var.aval.shape:
                size *= length
            assert size <= 2 * N * wide, eqn


def flops(eqn):
    """Multiplications of a matrix product: the sizes of its output times those it sums over."""
    (contracted, _), _ = eqn.params["dimension_numbers"]
    total = 1
    for length in eqn.outvars[0].aval.shape:
        total *= length
    for axis in contracted:
        total *= eqn.invars[0].aval.shape[axis]
    return total

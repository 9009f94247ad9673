"""What a training step may cost, without a clock: equations, operations, compilations, and traffic with the host."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import latentforce as lf
from latentforce.inference._objectives import whole
from latentforce.inference._steps import Plan, adam, advance, advance_soon, begin, program
from latentforce.inference._training import default_objective

SAMPLES = 2


def problem(name, rows=200, frequencies=20, **options):
    """Arguments of `advance` for a deep model of one input, and its number of features."""
    x = jnp.linspace(0.0, 1.0, rows)[:, None]
    model = lf.build(name, x, x, num_frequencies=frequencies, **options)
    plan = Plan(
        objective=default_objective(model, SAMPLES),
        optimizer=adam(0.01, None),
        batch_size=None,
        natural=None,
        train_filters=model.train_filters,
        chunk=3,
    )
    state, fixed = begin(model, plan)
    return (state, fixed, whole(x, x), jax.random.key(0), plan, 100), model.layers[0].posterior.shape[-1]


def cost(name, **sizes):
    """Equations and floating-point operations of a step, and those of the products in them that cannot be left out."""
    arguments, features = problem(name, **sizes)
    traced = advance.trace(*arguments)
    rows = sizes.get("rows", 200) * (1 + SAMPLES)
    return (
        sum(1 for _ in equations(traced.jaxpr.jaxpr)),
        traced.lower().cost_analysis()["flops"],
        6 * rows * features**2,
    )


def equations(jaxpr):
    """All of them, also inside others."""
    for equation in jaxpr.eqns:
        yield equation
        for leaf in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")):
            part = leaf.jaxpr if hasattr(leaf, "jaxpr") else leaf
            if hasattr(part, "eqns"):
                yield from equations(part)


@pytest.mark.parametrize(("name", "most"), [("dlfm-vfrf", 5600), ("dlfm-driven", 4900)])
def test_equations_and_operations_of_a_step(name, most):
    """In float32 20 frequencies are few: features times the root of q."""
    number, flops, products = cost(name)
    print(name, number, flops / products)
    assert number < most
    assert products < flops < 1.6 * products


@pytest.mark.parametrize(("name", "most", "share"), [("dlfm-vfrf", 6000, 0.7), ("dlfm-driven", 5250, 1.05)])
def test_equations_and_operations_of_polynomials(name, most, share, x64):
    """In float64 they are many, and there is less to be done than those products, the more the more there are."""
    number, flops, products = cost(name)
    _, large, large_products = cost(name, rows=4000, frequencies=100)
    print(name, number, flops / products, large / large_products)
    assert number < most
    assert flops < share * products
    assert large < 0.25 * large_products


def test_products_are_in_full_precision():
    """What an accelerator makes of float32 otherwise has three digits."""
    (state, fixed, batch, key, plan, steps), _ = problem("dlfm-driven", rows=20, frequencies=3)
    model = lf.build("dlfm-driven", batch.x, batch.y, num_frequencies=3)
    programs = {
        "step": advance.trace(state, fixed, batch, key, plan, steps).jaxpr,
        "elbo": jax.make_jaxpr(lf.elbo)(model, batch, key),
        "importance": jax.make_jaxpr(lf.importance_weighted_bound)(model, batch, key),
    }
    for name, traced in programs.items():
        products = [one for one in equations(traced.jaxpr) if one.primitive.name == "dot_general"]
        assert products
        assert {one.params["precision"] for one in products} == {(jax.lax.Precision.HIGHEST,) * 2}, name


@pytest.mark.parametrize("filter", [lf.FirstOrder(1.0, 0.5), lf.SecondOrder(1.0, 0.5, 2.0)])
@pytest.mark.parametrize("name", ["dlfm-vfrf", "dlfm-driven"])
def test_a_step_waits_for_no_library_of_matrices(name, filter, x64):
    """On a GPU a decomposition of a 2 x 2 matrix takes as long as twenty products: they are written out."""
    arguments, _ = problem(name, rows=20, frequencies=20, filter=filter)
    found = {one.primitive.name for one in equations(advance.trace(*arguments).jaxpr.jaxpr)}
    assert "dot_general" in found
    assert not found & {"lu", "cholesky", "triangular_solve", "eigh", "svd", "householder_product"}


def test_operations_grow_with_rows_and_with_the_square_of_few_features():
    _, base, _ = cost("dlfm-driven", rows=400, frequencies=12)
    _, more_rows, _ = cost("dlfm-driven", rows=800, frequencies=12)
    _, more_features, _ = cost("dlfm-driven", rows=400, frequencies=24)
    print(more_rows / base, more_features / base)
    assert 1.9 < more_rows / base <= 2.0
    assert more_features / base < 4.0


def test_operations_grow_with_rows_and_with_many_features(x64):
    """Hardly faster than linearly: what grows with the cube of features knows nothing of rows."""
    _, base, _ = cost("dlfm-driven", rows=8000, frequencies=40)
    _, more_rows, _ = cost("dlfm-driven", rows=16000, frequencies=40)
    _, more_features, _ = cost("dlfm-driven", rows=8000, frequencies=80)
    print(more_rows / base, more_features / base)
    assert 1.9 < more_rows / base <= 2.0
    assert more_features / base < 2.3


def test_a_fit_compiles_its_steps_once(caplog, x64):
    x = np.linspace(0.0, 1.0, 23)
    model = lf.build("lfm-driven", x, x, num_frequencies=3)
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        lf.fit(model, x, x, steps=35, chunk=10)
        lf.fit(model, x, 2 * x, steps=35, chunk=10)
    assert sum("Compiling jit(_advance)" in record.getMessage() for record in caplog.records) == 1


def test_only_short_trainings_are_compiled_in_a_hurry(x64):
    (state, fixed, batch, key, plan, steps), _ = problem("lfm-driven", rows=20, frequencies=3)
    assert program(state, batch, plan, steps) is advance_soon
    assert program(state, batch, plan, 10**9) is advance
    soon, late = (one(state, fixed, batch, key, plan, steps) for one in (advance_soon, advance))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12), soon, late)


def test_nothing_goes_through_the_host_inside_the_loop(x64):
    arguments, _ = problem("lfm-driven", rows=20, frequencies=3)
    advance(*arguments)
    with jax.transfer_guard("disallow"):
        state, _ = advance(*arguments)
    assert int(state.step) == 3
    text = advance.lower(*arguments).as_text()
    assert not any(word in text for word in ("infeed", "outfeed", "callback", "send", "recv"))


def test_the_guard_of_the_test_above_guards():
    with jax.transfer_guard("disallow"), pytest.raises(Exception, match="Disallowed"):
        jnp.sin(np.ones(3))

"""Training and prediction: what a user relies on."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.integrate
import scipy.stats

import latentforce as lf
from latentforce._parameters import constrain, roles, unconstrain

pytestmark = pytest.mark.usefixtures("x64")
elbo = jax.jit(lf.elbo, static_argnums=3)  # one program, not one for each operation
X = np.linspace(0.0, 1.0, 16)
Y = np.sin(6 * X)


@pytest.fixture(scope="module")
def deep():
    """A deep model after a few steps, with a learning curve."""
    with jax.enable_x64(True):
        return lf.fit(lf.build("dlfm-driven", X, Y, num_frequencies=3), X, Y, steps=20, chunk=10, num_samples=2)


# --- parameters ------------------------------------------------------------------------------------------------------


def test_free_parameters_and_back(deep):
    model = deep.model
    back = constrain(unconstrain(model))
    for got, want in zip(jax.tree.leaves(back), jax.tree.leaves(model), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    kinds = {str(role) for role in jax.tree.leaves(roles(model))}
    assert kinds == {"positive", "free", "triangular", "constant", "above 1e-06"}


def test_a_trained_ode_of_any_order_stays_stable():
    generator = np.random.default_rng(0)
    for order in (1, 2, 3, 4, 5):
        for _ in range(5):
            filter = lf.LinearODE(np.poly(-generator.uniform(0.1, 3.0, order))[::-1])
            np.testing.assert_allclose(constrain(unconstrain(filter)).coefficients, filter.coefficients, rtol=1e-8)
            moved = jax.tree.map(lambda leaf: leaf + generator.standard_normal(leaf.shape), unconstrain(filter))
            roots = np.roots(np.asarray(constrain(moved).coefficients)[::-1])
            assert roots.size == order and np.all(roots.real < 0)


# --- training --------------------------------------------------------------------------------------------------------


def test_history(deep):
    history = deep.history
    assert len(history.objective) == len(history.gradient_norm) == 20
    assert history.steps == [10, 20] and len(history.seconds) == len(history.parameters) == 2
    assert history.objective[-1] > history.objective[0]
    assert history.parameters[0].keys() == history.parameters[1].keys()
    assert any(name.endswith("filter.beta") for name in history.parameters[0])
    assert not any("posterior" in name for name in history.parameters[0])


@pytest.mark.parametrize(("start", "moves"), [(0, [True, True]), (10, [False, True]), (None, [False, False])])
def test_when_the_ode_is_trained(start, moves):
    model = lf.build("lfm-vfrf", X, Y, num_frequencies=2, train_filters=start)
    before = float(model.layers[0].outputs.process.filter.beta[0, 0])
    history = lf.fit(model, X, Y, steps=20, chunk=10, learning_rate=0.01, decay=False).history
    betas = [float(p["layers[0].outputs.process.filter.beta"][0, 0]) for p in history.parameters]
    assert [abs(beta - before) > 1e-6 for beta in betas] == moves
    if start == 10:  # its optimiser begins then, too: ten steps move it as far as Adam can go in ten
        assert abs(np.log(betas[1] / before)) < 0.11


def test_batches_weights_and_missing_targets(deep):
    model = lf.build("lfm-driven", X, Y, num_frequencies=3)
    key = jax.random.key(0)
    data = lf.whole(jnp.asarray(X)[:, None], jnp.asarray(Y)[:, None])
    twice = lf.whole(jnp.repeat(data.x, 2, axis=0), jnp.repeat(data.y, 2, axis=0))
    heavy = lf.whole(data.x, data.y, jnp.full(X.size, 2.0))
    np.testing.assert_allclose(elbo(model, heavy, key), elbo(model, twice, key), rtol=1e-12)
    both = lf.build("lfm-driven", X, np.stack([Y, Y], axis=1), num_frequencies=3)
    holes = jnp.stack([data.y[:, 0], jnp.full(X.size, jnp.nan)], axis=1)
    np.testing.assert_allclose(elbo(both, lf.whole(data.x, holes), key), elbo(model, data, key), rtol=1e-12)
    fitted = lf.fit(model, X, Y, steps=20, chunk=10, batch_size=5, weight=np.arange(16.0))
    assert fitted.history.objective[-1] > fitted.history.objective[0]


def test_lbfgs_on_deterministic_objectives():
    for name, objective in (("exact-lfm", None), ("lfm-driven", lf.collapsed_bound)):
        model = lf.build(name, X, Y + 0.1 * np.cos(50 * X), num_frequencies=3)
        history = lf.fit(
            model, X, Y + 0.1 * np.cos(50 * X), steps=15, chunk=15, objective=objective, optimizer=optax.lbfgs()
        ).history
        assert history.objective[-1] > history.objective[0] + 0.05


# --- prediction ------------------------------------------------------------------------------------------------------


def test_predictions_do_not_depend_on_chunks_or_company(deep):
    whole = lf.predict(deep.model, X)
    for chunk in (5, 16):
        part = lf.predict(deep.model, X, chunk=chunk)
        np.testing.assert_allclose(part.means, whole.means, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(lf.predict(deep.model, X[3:5]).variance, whole.variance[3:5], rtol=1e-10)
    np.testing.assert_allclose(lf.predict_mean(deep.model, X, chunk=7), whole.mean, atol=1e-12)


def test_the_mixture_keeps_its_promises(deep):
    prediction = lf.predict(deep.model, X, num_samples=50)
    noise = float(deep.model.likelihood.variance)
    total = prediction.variances.mean(axis=0) + prediction.means.var(axis=0)
    np.testing.assert_allclose(prediction.f_variance, total, rtol=1e-10)
    np.testing.assert_allclose(prediction.variance, total + noise, rtol=1e-10)
    for level in (0.025, 0.5, 0.9):
        np.testing.assert_allclose(prediction.cdf(prediction.quantile(level)), level, atol=1e-9)
    n = 3  # one input: the density integrates to one, and the samples follow it
    grid = np.linspace(-8.0, 8.0, 4001)
    one = lf.predict(deep.model, X[n : n + 1], num_samples=50)
    values = np.exp([float(one.log_density(jnp.full((1, 1), y))[0, 0]) for y in grid[::40]])
    assert abs(scipy.integrate.trapezoid(values, grid[::40]) - 1) < 0.02
    draws = np.asarray(one.sample(jax.random.key(0), 4000))[:, 0, 0]
    assert abs(draws.mean() - float(one.mean[0, 0])) < 4 * draws.std() / 60
    for level in (0.1, 0.5, 0.9):
        assert abs(np.mean(draws < float(one.quantile(level)[0, 0])) - level) < 0.03


def test_hidden_marginals(deep):
    marginals = lf.hidden_marginals(deep.model, X)
    assert [mean.shape for mean, _ in marginals] == [(16, 1), (16, 1)]
    mean, variance = deep.model.layers[0].moments(jnp.asarray(X)[:, None])
    np.testing.assert_allclose(marginals[0][0], mean, atol=1e-12)
    np.testing.assert_allclose(marginals[0][1], variance, atol=1e-12)
    np.testing.assert_allclose(marginals[1][1], lf.predict(deep.model, X).f_variance, rtol=1e-9)


@pytest.mark.parametrize("name", ["lfm", "lfm-vfrf", "lfm-driven", "lfm-rff"])
def test_function_draws_follow_the_posterior_and_are_functions(name):
    model = lf.build(name, X, Y, num_frequencies=3)
    model = lf.collapse(model, lf.whole(jnp.asarray(X)[:, None], jnp.asarray(Y)[:, None]))
    functions = lf.sample_functions(model, jax.random.key(1), 3000, num_knots=60)
    at = np.array([0.05, 0.4, 0.95, 1.2])
    values = np.asarray(functions(at))[:, :, 0]
    mean, variance = (np.asarray(v)[:, 0] for v in model.layers[0].moments(jnp.asarray(at)[:, None]))
    assert np.all(np.abs(values.mean(axis=0) - mean) < 4.5 * np.sqrt(variance / 3000))
    np.testing.assert_allclose(values.var(axis=0), variance, rtol=0.15)
    np.testing.assert_allclose(functions(at[::-1])[:5, ::-1, 0], values[:5], atol=1e-9)


def test_deep_function_draws_are_coherent(deep):
    functions = lf.sample_functions(deep.model, jax.random.key(1), 2, num_knots=30)
    np.testing.assert_allclose(functions(X)[:, ::5], functions(X[::5]), atol=1e-9)
    assert np.std(functions(X)[0] - functions(X)[1]) > 1e-3


def test_the_force_of_a_hidden_layer(deep):
    for layer in (0, 1):
        u = lf.force(deep.model, X, layer=layer)
        assert u.mean.shape == (16,) and np.all(np.linalg.eigvalsh(u.covariance) > -1e-8)
        draws = u.sample(jax.random.key(0), 2000)
        np.testing.assert_allclose(draws.var(axis=0), u.variance, rtol=0.2)
    with pytest.raises(ValueError, match="`layer` must lie between 0 and 1, got 2"):
        lf.force(deep.model, X, layer=2)
    with pytest.raises(ValueError, match="`direction` must lie between 0 and 0, got 1"):
        lf.force(deep.model, X, direction=1)


# --- likelihoods -----------------------------------------------------------------------------------------------------

LIKELIHOODS = {
    "gaussian": (lf.Gaussian(0.3), [0.4, -1.0], lambda f: scipy.stats.norm(f, 0.3**0.5)),
    "student": (lf.StudentT(4.0, 0.5), [0.4, -3.0], lambda f: scipy.stats.t(4.0, f, 0.5)),
    "bernoulli": (lf.Bernoulli(), [0.0, 1.0], lambda f: scipy.stats.bernoulli(1 / (1 + np.exp(-f)))),
    "poisson": (lf.Poisson(), [0.0, 3.0], lambda f: scipy.stats.poisson(np.exp(f))),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_likelihoods_against_scipy(name):
    likelihood, values, law = LIKELIHOODS[name]
    likelihood = jax.tree.map(lambda leaf: leaf.astype(float), likelihood)
    m, v = 0.3, 0.2

    def expect(function):
        weigh = scipy.stats.norm(m, v**0.5).pdf
        return scipy.integrate.quad(lambda f: weigh(f) * function(f), m - 8 * v**0.5, m + 8 * v**0.5, epsabs=1e-11)[0]

    y, mean, variance = jnp.asarray(values)[:, None], jnp.full((2, 1), m), jnp.full((2, 1), v)
    log = "logpmf" if name in ("bernoulli", "poisson") else "logpdf"
    want = [expect(lambda f, y=y: getattr(law(f), log)(y)) for y in values]
    np.testing.assert_allclose(likelihood.expected_log_prob(y, mean, variance)[:, 0], want, rtol=2e-4)
    want = [np.log(expect(lambda f, y=y: np.exp(getattr(law(f), log)(y)))) for y in values]
    np.testing.assert_allclose(likelihood.log_density(y, mean, variance)[:, 0], want, rtol=2e-4)
    want = [expect(lambda f, y=y: law(f).cdf(y)) for y in values]
    np.testing.assert_allclose(likelihood.predictive_cdf(y, mean, variance)[:, 0], want, rtol=2e-4)
    first = expect(lambda f: law(f).mean())
    second = expect(lambda f: law(f).var() + law(f).mean() ** 2) - first**2
    got = likelihood.predictive_moments(mean, variance)
    np.testing.assert_allclose(got[0], first, rtol=1e-6)
    np.testing.assert_allclose(got[1], second, rtol=1e-6)
    draws = likelihood.sample(jax.random.key(0), jnp.full((20_000, 1), m))
    assert abs(float(draws.mean()) - law(m).mean()) < 5 * law(m).std() / 20_000**0.5
    assert float(likelihood.expected_log_prob(jnp.full((2, 1), jnp.nan), mean, variance).sum()) == 0.0


def test_the_heteroscedastic_likelihood():
    likelihood = jax.tree.map(lambda leaf: leaf.astype(float), lf.HeteroscedasticGaussian(0.5))
    mean, variance = jnp.asarray([[0.2, 0.4]]), jnp.asarray([[0.3, 0.1]])
    y = jnp.asarray([[0.7]])
    level = scipy.stats.norm(0.4, 0.1**0.5)

    def expect(function):
        return scipy.integrate.quad(lambda g: level.pdf(g) * function(0.25 * np.exp(g)), -3.0, 4.0)[0]

    want = expect(lambda s: scipy.stats.norm(0.2, s**0.5).logpdf(0.7) - 0.3 / (2 * s))
    np.testing.assert_allclose(likelihood.expected_log_prob(y, mean, variance)[0, 0], want, rtol=1e-7)
    want = np.log(expect(lambda s: scipy.stats.norm(0.2, (0.3 + s) ** 0.5).pdf(0.7)))
    np.testing.assert_allclose(likelihood.log_density(y, mean, variance)[0, 0], want, rtol=1e-7)
    want = expect(lambda s: scipy.stats.norm(0.2, (0.3 + s) ** 0.5).cdf(0.7))
    np.testing.assert_allclose(likelihood.predictive_cdf(y, mean, variance)[0, 0], want, rtol=1e-7)
    assert likelihood.num_functions(3) == 6


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lf.Gaussian(-1.0), "`variance` must be positive"),
        (lambda: lf.Gaussian(1e-9), "`variance` must be larger than 1e-06"),
        (lambda: lf.StudentT(df=1.5), "`df` must be larger than 2"),
        (lambda: lf.build("gp", X, Y), "`name` must be one of svgp"),
        (lambda: lf.build("svgp", X, Y, depth=2), "its deep counterpart is .'dgp'"),
        (lambda: lf.build("iddgp", X, Y, nu=None), "`nu` must be a half-integer"),
        (lambda: lf.build("iddgp", X, Y, covariance="sparse"), "`covariance` must be one of 'full'"),
        (lambda: lf.build("iddgp", X, Y, interval=(1.0, 0.0)), "`interval` must be a pair"),
        (lambda: lf.build("iddgp", X, Y, interval=(0.0, 1.0), directions=2), "`interval` must be None with learned"),
        (lambda: lf.build("iddgp", X, Y, lengthscale=-1.0), "`lengthscale` must be positive"),
        (lambda: lf.build("iddgp", X, Y, variance=float("nan")), "`variance` must be positive"),
        (lambda: lf.build("iddgp", X, Y, train_filters=-1), "`train_filters` must be a whole number"),
        (lambda: lf.build("dlfm-vfrf", X, Y, filter="third"), "`filter` must be one of 'first'"),
        (lambda: lf.build("exact-gp", X, Y, likelihood=lf.Poisson()), "`likelihood` must be Gaussian for exact"),
        (lambda: lf.collapse(lf.build("dgp", X, Y, num_frequencies=2), lf.whole(jnp.zeros((1, 1)), jnp.zeros((1, 1)))),
         "one layer and a Gaussian likelihood"),
        (lambda: lf.build("exact-lfm", X, Y, num_forces=2), "`num_forces` must be None for an exact model"),
        (lambda: lf.fit(lf.build("ssgp", X, Y), X, Y, decay=True, optimizer=optax.sgd(0.1)), "`decay` must be False"),
        (lambda: lf.compress(X, Y, (0.2, 0.8)), "`t` must lie inside `interval`"),
    ],
)  # fmt: skip
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_table_of_presets():
    table = lf.presets()
    assert len(table) == 18
    cube = {(row.ode, row.features, row.deep) for row in table.values()}
    assert len(cube) == 18
    for name, row in table.items():
        model = lf.build(name, X, Y, num_frequencies=2)
        if row.features is None:
            assert (model.process.filter.order > 0) == row.ode
        else:
            assert (model.depth > 1) == row.deep
            assert (model.layers[0].outputs.process.filter.order > 0) == row.ode
            assert row.features in type(model.layers[0].features).__name__.lower()
    assert eqx.tree_equal(lf.build("dgp", X, Y, seed=1), lf.build("dgp", X, Y, seed=1))

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
from latentforce.depth._likelihoods import NOISE_FLOOR
from latentforce.depth._model import layered
from latentforce.inference._prediction import Prediction

pytestmark = pytest.mark.usefixtures("x64")
elbo = jax.jit(lf.elbo, static_argnums=3)  # one program, not one for each operation
X = np.linspace(0.0, 1.0, 16)
Y = np.sin(6 * X)
GAPS = np.where(np.arange(16) == 3, np.nan, Y)
KEY = jax.random.key(0)


def shallow(**options):
    return lf.build("lfm-driven", X, Y, num_frequencies=2, **options)


def batch(y):
    return lf.whole(jnp.asarray(X)[:, None], jnp.asarray(y).reshape(16, -1))


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
        return scipy.integrate.quad(lambda g: level.pdf(g) * function(0.25 * np.exp(g) + NOISE_FLOOR), -3.0, 4.0)[0]

    want = expect(lambda s: scipy.stats.norm(0.2, s**0.5).logpdf(0.7) - 0.3 / (2 * s))
    np.testing.assert_allclose(likelihood.expected_log_prob(y, mean, variance)[0, 0], want, rtol=1e-7)
    want = np.log(expect(lambda s: scipy.stats.norm(0.2, (0.3 + s) ** 0.5).pdf(0.7)))
    np.testing.assert_allclose(likelihood.log_density(y, mean, variance)[0, 0], want, rtol=1e-7)
    want = expect(lambda s: scipy.stats.norm(0.2, (0.3 + s) ** 0.5).cdf(0.7))
    np.testing.assert_allclose(likelihood.predictive_cdf(y, mean, variance)[0, 0], want, rtol=1e-7)
    assert likelihood.num_functions(3) == 6


@pytest.mark.parametrize("level", [0.0, -15.0, -40.0])
def test_heteroscedastic_noise_that_vanishes(level):
    """A density all the same, and the bound stays below it."""
    likelihood = jax.tree.map(lambda leaf: leaf.astype(float), lf.HeteroscedasticGaussian(0.1))
    f = jnp.asarray([[0.0, level]])
    y = np.linspace(-1.0, 1.0, 200_001)[:, None]
    density = np.exp(likelihood.log_prob(jnp.asarray(y), jnp.broadcast_to(f, (len(y), 2))))
    assert np.trapezoid(density[:, 0], y[:, 0]) == pytest.approx(1.0, rel=1e-6)
    for spread in (1e-12, 0.3, 3.0):
        given = jnp.asarray(y[::1000]), jnp.broadcast_to(f, (201, 2)), jnp.full((201, 2), spread)
        assert np.all(likelihood.expected_log_prob(*given) <= likelihood.log_density(*given) + 1e-9)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_quantiles_of_counts_are_counts(dtype):
    """Those of SciPy where the rate is known; intervals hold what they say, and `holds` agrees with them."""
    rates = np.asarray([0.05, 0.7, 3.0, 40.0])
    means = jnp.asarray(np.log(rates), dtype)[None, :, None]
    said = Prediction(means, jnp.zeros_like(means), lf.Poisson())
    for q in (0.025, 0.3, 0.5, 0.9, 0.999):
        np.testing.assert_array_equal(said.quantile(q)[:, 0], scipy.stats.poisson(rates).ppf(q))
    low, high = said.interval(0.9)
    for y in (0.0, 1.0, 3.0, 50.0):
        held = said.holds(jnp.full(4, y, dtype), 0.9)
        np.testing.assert_array_equal(held, (low <= y) & (y <= high))
    sure = Prediction(jnp.full((1, 2, 1), 4.0, dtype), jnp.zeros((1, 2, 1), dtype), lf.Bernoulli())
    np.testing.assert_array_equal(sure.quantile(0.5), 1.0)
    assert float(lf.scores(sure, np.asarray([1.0, 1.0])).coverage) == 1.0


def test_targets_of_one_column_may_be_flat():
    said = lf.predict(lf.build("lfm-driven", X, Y, num_frequencies=3), X)
    np.testing.assert_array_equal(said.log_density(Y), said.log_density(Y[:, None]))
    np.testing.assert_array_equal(said.cdf(Y), said.cdf(Y[:, None]))
    with pytest.raises(ValueError, match="`y` must have the shape of the prediction"):
        said.cdf(Y[:-1])


def test_hidden_marginals_in_chunks():
    model = lf.build("dlfm-driven", X, Y, num_frequencies=3)
    for one, other in zip(lf.hidden_marginals(model, X), lf.hidden_marginals(model, X, chunk=7), strict=True):
        for part, same in zip(one, other, strict=True):
            np.testing.assert_allclose(part, same, rtol=1e-5, atol=1e-6)


def test_the_best_state_is_returned_where_it_can_be_told():
    """An optimiser that climbs for a while and then jumps away."""
    climb = optax.adam(0.05)

    def update(gradients, memory, _=None):
        count, inner = memory
        updates, inner = climb.update(gradients, inner)
        return jax.tree.map(lambda u: jnp.where(count < 12, u, 1.0), updates), (count + 1, inner)

    wild = optax.GradientTransformation(lambda free: (jnp.zeros((), int), climb.init(free)), update)
    fitted = lf.fit(lf.build("exact-gp", X, Y), X, Y, steps=20, chunk=5, optimizer=wild)
    objective = fitted.history.objective
    assert objective[-1] < max(objective) - 0.1 and np.argmax(objective) not in (0, 19)
    reached = lf.log_marginal_likelihood(fitted.model, batch(Y))
    assert float(reached) == pytest.approx(max(objective), rel=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lf.Gaussian(-1.0), "`variance` must be positive"),
        (lambda: lf.Gaussian(1e-9), "`variance` must be larger than 1e-06"),
        (lambda: lf.StudentT(df=1.5), "`df` must be larger than 2"),
        (lambda: lf.StudentT(scale=5e-4), "`scale` must be larger than 0.001"),
        (lambda: lf.HeteroscedasticGaussian(5e-4), "`scale` must be larger than 0.001"),
        (lambda: lf.build("svgp", X, Y, likelihood=lf.Gaussian([0.1, 0.2])), "`likelihood` must have one variance"),
        (lambda: lf.collapse(shallow(), batch(GAPS)), "`y` must be observed everywhere for a bound"),
        (lambda: lf.fit(shallow(), X, GAPS, objective=lf.collapsed_bound), "observed everywhere for `collapsed_bound`"),
        (lambda: lf.laplace(shallow(), X, GAPS), "`y` must be observed everywhere for a likelihood"),
        (lambda: lf.fit(shallow(filter=lf.LinearODE([-1.0, -0.1])), X, Y), "parameters that can be trained, got .*-1"),
        (lambda: lf.fit(shallow(train_filters=2), X, Y, optimizer=optax.lbfgs()), "`train_filters` must be 0 or None"),
        (lambda: lf.fit(shallow(), X, Y, learning_rate=jnp.asarray(jnp.nan)), "`learning_rate` must be finite"),
        (lambda: lf.fit(shallow(likelihood=lf.Bernoulli()), X, np.sign(Y)), "`y` must be 0 or 1 for this"),
        (lambda: lf.fit(shallow(likelihood=lf.Poisson()), X, Y), "`y` must be counts"),
        (lambda: lf.elbo(shallow(), batch(np.ones((16, 2))), KEY), "`y` must have as many columns"),
        (lambda: lf.elbo(shallow(), batch(Y), KEY, 0), "`num_samples` must be a whole number"),
        (lambda: lf.scores(lf.predict(shallow(), X), Y, coverage=2.0), "`coverage` must lie between 0 and 1"),
        (lambda: layered(lf.build("exact-gp", X, Y)), "`model` must be a model of layers"),
        (lambda: lf.condition(lf.build("exact-gp", X, Y), X, Y).force(X, direction=1), "`direction` must lie between"),
        (lambda: lf.condition(lf.build("exact-gp", X, Y), X, Y).output(X, target=1), "`target` must lie between"),
        (lambda: lf.build("gp", X, Y), "`name` must be one of svgp"),
        (lambda: lf.build("svgp", X, Y, depth=2), "its deep counterpart is 'dgp'"),
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

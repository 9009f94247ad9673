"""Models against what they must equal: dense algebra, exact inference, each other."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import latentforce as lf
from latentforce._parameters import constrain, mask, unconstrain
from latentforce.depth._posteriors import POSTERIORS
from latentforce.inference._objectives import normals

pytestmark = pytest.mark.usefixtures("x64")
elbo = jax.jit(lf.elbo, static_argnums=3)  # one program, not one for each operation
N = 16  # as in test_inference.py: the same programs


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    x = np.sort(generator.uniform(0.0, 1.0, N))
    return x, np.sin(6 * x) + 0.1 * generator.standard_normal(N)


def batch(x, y):
    x, y = np.asarray(x), np.asarray(y)
    return lf.whole(jnp.asarray(x.reshape(len(x), -1)), jnp.asarray(y.reshape(len(y), -1)))


def shaken(model, seed=0, size=0.3):
    """The model with every free parameter moved at random: nothing is special about it any more."""
    free, generator = unconstrain(model), np.random.default_rng(seed)
    moved = jax.tree.map(
        lambda leaf, trains: leaf + size * trains * generator.standard_normal(leaf.shape), free, trainable(model)
    )
    return constrain(moved)


def trainable(model):
    return mask(model, lambda role, _: role.trainable)


def with_q(model, seed=1):
    """The model with a random q in its first layer."""
    layer = model.layers[0]
    generator = np.random.default_rng(seed)
    moved = jax.tree.map(lambda leaf: leaf + 0.3 * generator.standard_normal(leaf.shape), layer.posterior)
    return eqx.tree_at(lambda m: m.layers[0].posterior, model, constrain(unconstrain(moved)))


def test_one_layer_is_svgp_written_out_densely(data):
    x, y = data
    model = with_q(lf.build("svgp", x, y, num_frequencies=3, lengthscale=0.3, variance=0.7))
    layer, noise = model.layers[0], float(model.likelihood.variance)
    process = jax.tree.map(lambda leaf: leaf[0, 0], layer.outputs.process)
    Z = np.asarray(layer.features.locations[0])
    Kzz, Kxz = (np.asarray(process.covariance(t, Z)) for t in (Z, x))
    L = np.linalg.cholesky(Kzz)
    m, S = L @ np.asarray(layer.posterior.mean[0, 0]), L @ np.asarray(layer.posterior.root[0])
    S = S @ S.T
    P = Kxz @ np.linalg.inv(Kzz)
    mean, variance = P @ m, 0.7 - np.sum(P * Kxz, axis=1) + np.sum((P @ S) * P, axis=1)
    got_mean, got_variance = layer.moments(jnp.asarray(x)[:, None])
    np.testing.assert_allclose(got_mean[:, 0], mean, atol=1e-9)
    np.testing.assert_allclose(got_variance[:, 0], variance, atol=1e-9)
    trace = np.trace(np.linalg.solve(Kzz, S)) + m @ np.linalg.solve(Kzz, m)
    kl = (trace - len(Z) + np.linalg.slogdet(Kzz)[1] - np.linalg.slogdet(S)[1]) / 2
    expected = -0.5 * np.log(2 * np.pi * noise) - ((y - mean) ** 2 + variance) / (2 * noise)
    np.testing.assert_allclose(elbo(model, batch(x, y), jax.random.key(0)), expected.mean() - kl / N, atol=1e-8)


@pytest.mark.parametrize("name", ["svgp", "lfm", "lfm-rff", "lfm-vfrf", "lfm-driven"])
def test_the_collapsed_bound_is_the_bound_at_its_best_q(data, name):
    x, y = data
    model = lf.build(name, x, y, num_frequencies=3)
    collapsed = lf.collapsed_bound(model, batch(x, y))
    best = lf.collapse(model, batch(x, y))
    np.testing.assert_allclose(elbo(best, batch(x, y), jax.random.key(0)), collapsed, rtol=1e-9)
    assert elbo(with_q(best), batch(x, y), jax.random.key(0)) < collapsed


def test_the_collapsed_bound_tends_to_the_exact_likelihood(data):
    x, y = data
    options = {"lengthscale": 0.3, "variance": 1.0, "filter": lf.FirstOrder(1.0, 0.05)}
    exact = lf.log_marginal_likelihood(lf.build("exact-lfm", x, y, **options), batch(x, y))
    gaps = [
        float(exact - lf.collapsed_bound(lf.build("lfm-driven", x, y, num_frequencies=M, **options), batch(x, y)))
        for M in (5, 20, 80)
    ]
    assert gaps[0] > 8 * gaps[1] > 64 * gaps[2] > 0


FILTERS = [lf.Identity(), lf.FirstOrder(1.0, 0.1), lf.SecondOrder(0.02, 0.1, 1.0)]


@pytest.mark.parametrize("filter", FILTERS, ids=lambda f: type(f).__name__)
def test_quasiseparable_inference_is_dense_inference(data, filter):
    x, y = data
    name = "exact-gp" if filter.order == 0 else "exact-lfm"
    order = np.random.default_rng(1).permutation(N)  # times need not come sorted
    y = np.stack([y, y**2], axis=1)[order]
    model = lf.build(name, x, y, filter=filter, nu=2.5, lengthscale=0.2, variance=1.0)
    values = [
        lf.log_marginal_likelihood(_solver(model, solver), batch(x[order], y)) for solver in ("dense", "quasiseparable")
    ]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-8)


def _solver(model, solver):
    return type(model)(model.inputs, model.process, model.likelihood, solver)


def test_a_vanishing_beta_turns_the_deep_lfm_into_the_iddgp(data):
    x, y = data
    plain = lf.build("iddgp", x, y, num_frequencies=3)
    fast = lf.build("dlfm-vfrf", x, y, num_frequencies=3, filter=lf.FirstOrder(1.0, 1e-9))
    key = jax.random.key(3)
    np.testing.assert_allclose(elbo(fast, batch(x, y), key, 4), elbo(plain, batch(x, y), key, 4), rtol=1e-6)
    got, want = (lf.predict(model, x, num_samples=8) for model in (fast, plain))
    np.testing.assert_allclose(got.means, want.means, atol=1e-6)
    np.testing.assert_allclose(got.variances, want.variances, atol=1e-6)


@pytest.mark.parametrize("name", ["lfm", "lfm-rff", "lfm-vfrf", "lfm-driven"])
def test_one_shared_force_of_one_output_is_the_plain_model(data, name):
    x, y = data
    options = {"num_frequencies": 3, "interval": (0.2, 0.8)}  # some data lie outside
    plain, shared = with_q(lf.build(name, x, y, **options)), lf.build(name, x, y, num_forces=1, **options)
    shared = eqx.tree_at(lambda m: m.layers[0].posterior, shared, plain.layers[0].posterior)
    for got, want in zip(*(m.layers[0].moments(jnp.asarray(x)[:, None]) for m in (shared, plain)), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-10)
    got, want = (lf.force(model, x) for model in (shared, plain))
    np.testing.assert_allclose(got.mean, want.mean, atol=1e-10)
    np.testing.assert_allclose(got.covariance, want.covariance, atol=1e-10)


@pytest.mark.parametrize("filter", FILTERS, ids=lambda f: type(f).__name__)
def test_driven_features_of_shared_forces_explain_all_outputs_together(filter):
    """Two outputs: before, inside and beyond the interval, against features of many modes on a far wider one."""
    scales = jnp.asarray([1.0, 0.4])
    filters = jax.vmap(lambda s: jax.tree.map(lambda leaf: leaf * s, filter))(scales) if filter.order else filter
    forces = jax.vmap(lambda s: lf.Matern(1.5, 0.3 + 0 * s, 1.0 + 0 * s))(scales)
    processes = jax.vmap(lf.Process)(forces, filters)
    t = jnp.linspace(0.1, 0.9, 9)
    wide = lf.DrivenFourier(250, (-0.5, 1.0)).shared(processes, t)
    whole = jnp.einsum("rnf,smf->rnsm", wide, wide)
    narrow = lf.DrivenFourier(250, (0.4, 1.0)).shared(processes, t)
    part = jnp.einsum("rnf,smf->rnsm", narrow, narrow)
    across = np.ix_(range(2), np.flatnonzero(t < 0.4), range(2), np.flatnonzero(t >= 0.4))
    np.testing.assert_allclose(part[across], whole[across], atol=2e-4)  # given the state at a, past and future part
    inside = np.ix_(range(2), np.flatnonzero(t >= 0.4), range(2), np.flatnonzero(t >= 0.4))
    np.testing.assert_allclose(part[inside], whole[inside], atol=2e-4)
    force = lf.DrivenFourier(250, (0.4, 1.0)).force_shared(processes, t)
    one = jax.tree.map(lambda leaf: leaf[1], processes)
    want = one.cross_covariance(t, t)  # of f with u
    got = narrow[1] @ force.T
    np.testing.assert_allclose(
        got[across[1].ravel()][:, across[3].ravel()], want[across[1].ravel()][:, across[3].ravel()], atol=2e-4
    )


def test_shared_forces_have_the_prior_covariance_of_their_outputs():
    x = np.linspace(0.0, 1.0, 5)
    model = lf.build(
        "lfm-driven",
        x,
        np.zeros((5, 3)),
        num_forces=2,
        num_frequencies=60,
        filter=lf.SecondOrder(0.02, 0.1, 1.0),
        seed=2,
    )
    model = shaken(model, size=0.1)
    outputs = model.layers[0].outputs
    A, residual = outputs.summary(model.layers[0].features, jnp.asarray(x)[None])
    explained = jnp.einsum("rbfn,sbfn->nrs", A, A)
    covariance = outputs.residual_covariance(model.layers[0].features, A) + explained
    np.testing.assert_allclose(explained, covariance, atol=2e-3 * float(jnp.max(covariance)))
    np.testing.assert_allclose(covariance, jnp.broadcast_to(covariance[:1], covariance.shape), rtol=1e-9)
    assert np.all(np.linalg.eigvalsh(covariance - explained) > -1e-9)
    assert np.all(np.asarray(residual) >= 0)


@pytest.mark.parametrize("name", ["lfm", "lfm-vfrf", "lfm-driven"])
def test_the_posterior_of_the_force_is_that_of_dense_conditioning(data, name):
    """Given the features alone: `u | y` in the model whose prior is what the features explain, written out densely."""
    x, y = data
    model = lf.collapse(lf.build(name, x, y, num_frequencies=4), batch(x, y))
    layer, noise = model.layers[0], float(model.likelihood.variance)
    process, features = (jax.tree.map(lambda leaf: leaf[0], tree) for tree in (layer.outputs.process, layer.features))
    process = jax.tree.map(lambda leaf: leaf[0], process)
    t = jnp.linspace(-0.2, 1.2, 8)
    A, U = features.whitened(process, x), features.force_whitened(process, t)
    K = A @ A.T + noise * jnp.eye(N)
    got = lf.force(model, t)
    np.testing.assert_allclose(got.mean, U @ A.T @ np.linalg.solve(K, y), atol=1e-8)
    want = process.force_covariance(t, t) - U @ A.T @ np.linalg.solve(K, A @ U.T)
    np.testing.assert_allclose(got.covariance, want, atol=1e-8)


def test_the_force_of_the_exact_model_is_the_limit(data):
    x, y = data
    options = {"lengthscale": 0.3, "variance": 1.0, "filter": lf.FirstOrder(1.0, 0.05)}
    t = jnp.linspace(0.0, 1.0, 6)
    exact = lf.condition(lf.build("exact-lfm", x, y, **options), *batch(x, y)[:2]).force(t)
    model = lf.build("lfm-driven", x, y, num_frequencies=150, **options)
    close = lf.force(lf.collapse(model, batch(x, y)), t)
    np.testing.assert_allclose(close.mean, exact.mean, atol=2e-3)
    np.testing.assert_allclose(close.covariance, exact.covariance, atol=2e-3)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("dlfm-vfrf", {"num_forces": 1, "covariance": "block"}),
        ("dlfm-driven", {"directions": 3, "covariance": "diagonal", "bounded": True, "shared_kernels": False}),
    ],
    ids=["shared", "directions"],
)
def test_gradients_of_the_bound_are_its_finite_differences(data, name, options):
    x, y = data
    x = np.stack([x, np.cos(9 * x)], axis=1)
    model = shaken(lf.build(name, x, y, num_frequencies=2, start="prior", **options), size=0.1)
    free, structure = jax.tree.flatten(unconstrain(model))
    trains = jax.tree.leaves(trainable(model))
    direction = [
        t * np.random.default_rng(i).standard_normal(leaf.shape)
        for i, (t, leaf) in enumerate(zip(trains, free, strict=True))
    ]

    @jax.jit
    @jax.value_and_grad
    def value(step):
        moved = structure.unflatten([leaf + step * d for leaf, d in zip(free, direction, strict=True)])
        return elbo(constrain(moved), batch(x, y), jax.random.key(5), 3)

    h = 1e-5
    (low, _), (_, slope), (high, _) = (value(step) for step in (-h, 0.0, h))
    np.testing.assert_allclose(slope, (high - low) / (2 * h), rtol=1e-5)


@pytest.mark.parametrize("covariance", list(POSTERIORS))
def test_one_natural_step_of_size_one_is_the_best_q(data, covariance):
    x, y = data
    model = lf.build("lfm-driven", x, y, num_frequencies=3, covariance=covariance, train_filters=None)
    fitted = lf.fit(model, x, y, steps=1, natural=1.0, learning_rate=1e-12).model
    reached, best = elbo(fitted, batch(x, y), jax.random.key(0)), lf.collapsed_bound(model, batch(x, y))
    if covariance == "diagonal":  # has its own optimum, below
        assert elbo(model, batch(x, y), jax.random.key(0)) < reached < best
    else:
        np.testing.assert_allclose(reached, best, rtol=1e-6)


def test_compressed_data_give_the_same_bound_whatever_the_hyperparameters():
    generator = np.random.default_rng(2)
    t = generator.uniform(0.0, 1.0, 3000)
    y = np.stack([np.sin(9 * t), t], axis=1) + 0.1 * generator.standard_normal((3000, 2))
    halves = [
        lf.compress(t[part], y[part], (-0.1, 1.1), bins=48, dense=6) for part in (slice(0, 999), slice(999, None))
    ]
    statistics = halves[0] + halves[1]
    for beta in (0.05, 1e-4):
        model = lf.build("lfm-driven", t, y, num_frequencies=20, interval=(-0.1, 1.1), filter=lf.FirstOrder(1.0, beta))
        np.testing.assert_allclose(
            lf.collapsed_bound(model, statistics), lf.collapsed_bound(model, batch(t, y)), rtol=1e-9
        )


@pytest.mark.parametrize("alike", [False, True])
def test_mirrored_draws_have_the_same_mean_and_less_noise(data, alike):
    x, y = data
    model = shaken(lf.build("dlfm-driven", x, y, num_frequencies=2, depth=3), size=0.05)

    @jax.jit
    def of_keys(model):
        def one(key, mirrored):
            return jax.value_and_grad(lf.elbo)(model, batch(x, y), key, 2, alike, mirrored)

        keys = jax.random.split(jax.random.key(0), 400)
        return [jax.vmap(lambda key, mirrored=mirrored: one(key, mirrored))(keys) for mirrored in (False, True)]

    (plain, plain_slopes), (paired, paired_slopes) = of_keys(model)
    spread = np.sqrt((plain.var() + paired.var()) / len(plain))
    assert abs(plain.mean() - paired.mean()) < 4 * spread
    noise = [
        sum(float(jnp.sum(jnp.var(leaf, axis=0))) for leaf in jax.tree.leaves(eqx.filter(slopes, trainable(model))))
        for slopes in (plain_slopes, paired_slopes)
    ]
    assert noise[1] < noise[0] / 2


@pytest.mark.parametrize(("number", "signs"), [(1, [1]), (2, [1, -1]), (3, [1, 1, -1])])
def test_of_an_odd_number_of_draws_the_last_has_no_mirror_image(data, number, signs):
    x, y = data
    model, rows, key = lf.build("dlfm-driven", x, y, num_frequencies=2), batch(x, y), jax.random.key(0)
    model = shaken(model, size=0.1)
    (drawn,) = normals(model, key, -(-number // 2), rows.x)
    drawn = jnp.stack([sign * drawn[i % len(drawn)] for i, sign in enumerate(signs)])
    values = model.likelihood.expected_log_prob(rows.y, *model.moments(rows.x, (drawn,)))
    np.testing.assert_allclose(elbo(model, rows, key, number), values.mean() - model.kl() / N, rtol=1e-12)


def test_the_importance_weighted_bound_tightens(data):
    x, y = data
    model = shaken(lf.build("dgp", x, y, num_frequencies=2, variance=0.3, start="prior"), size=0.05)

    @jax.jit
    def bounds(model, key):
        weighted = (lf.importance_weighted_bound(model, batch(x, y), key, 1000, inner) for inner in (1, 20))
        return elbo(model, batch(x, y), key, 1000), *weighted

    plain, one, many = bounds(model, jax.random.key(0))
    assert plain < one < many


def test_projections_see_interactions_and_identity_directions_are_the_additive_model():
    generator = np.random.default_rng(0)
    x = generator.uniform(-1.0, 1.0, (60, 2))
    x[0], x[1] = (-1.0, -1.0), (1.0, 1.0)  # so that directions in units of the range are the coordinates themselves
    y = x[:, 0] * x[:, 1]
    options = {"num_frequencies": 5, "covariance": "block", "seed": 1}
    models = [lf.build("lfm-driven", x, y, directions=k, **options) for k in (None, 2, 8)]
    for got, want in zip(*(m.layers[0].moments(jnp.asarray(x)) for m in models[:2]), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-10)
    rest = generator.uniform(-0.9, 0.9, (40, 2))
    errors = [np.std(np.prod(rest, axis=1) - lf.predict_mean(lf.collapse(m, batch(x, y)), rest)[:, 0]) for m in models]
    assert errors[2] < errors[0] / 2


def test_mixing_is_linear(data):
    x, y = data
    Y = np.stack([y, 2 * y, x], axis=1)
    model = with_q(lf.build("lfm-driven", x, Y, num_frequencies=3, num_latents=2))
    layer = model.layers[0]
    latent = eqx.tree_at(lambda layer: layer.mixing, layer, None, is_leaf=lambda leaf: leaf is None)
    mean, variance = layer.moments(jnp.asarray(x)[:, None])
    inner_mean, inner_variance = latent.moments(jnp.asarray(x)[:, None])
    np.testing.assert_allclose(mean, inner_mean @ layer.mixing.T, atol=1e-12)
    np.testing.assert_allclose(variance, inner_variance @ (layer.mixing**2).T, atol=1e-12)


def test_bounded_inputs_stay_inside_the_interval(data):
    x, y = data
    model = lf.build("dlfm-driven", x, y, num_frequencies=2, bounded=True)
    a, b = (float(end[0]) for end in model.layers[1].features.interval)
    t = model.layers[1].inputs(jnp.asarray([[-1e6], [(a + b) / 2], [1e6]]))
    np.testing.assert_allclose(t[0], [a, (a + b) / 2, b], atol=1e-9)


def test_float32_agrees_with_float64(data):
    x, y = data

    def value():
        model = lf.build("dlfm-driven", x, y, num_frequencies=3, variance=0.1)
        return float(elbo(model, lf.whole(*(jnp.asarray(v, float)[:, None] for v in (x, y))), jax.random.key(0)))

    wide = lf.build("lfm-driven", x, y, num_frequencies=3)
    want = float(elbo(wide, batch(x, y), jax.random.key(0)))
    with jax.enable_x64(False):
        assert np.isfinite(value())
        narrow = lf.build("lfm-driven", x, y, num_frequencies=3)
        got = float(elbo(narrow, lf.whole(*(jnp.asarray(v, float)[:, None] for v in (x, y))), jax.random.key(0)))
    np.testing.assert_allclose(got, want, rtol=1e-4)


def test_narrow_hidden_layers_are_of_the_models_dtype():
    x = np.random.default_rng(0).standard_normal((20, 3))
    for wide, dtype in ((False, jnp.float32), (True, jnp.float64)):
        with jax.enable_x64(wide):  # a warning of numbers cut short would be an error here
            model = lf.build("dlfm-driven", x, x[:, 0], width=2, num_frequencies=2)
        assert model.layers[0].mean.weights.dtype == model.layers[0].mean.offset.dtype == dtype

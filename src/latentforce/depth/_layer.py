"""The layer: additive processes, summarised by features, with a posterior over them."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from .._parameters import FREE, parameter
from ..features._base import AbstractFeatures
from ._inputs import AbstractInputs
from ._means import AbstractMean
from ._outputs import AbstractOutputs
from ._posteriors import AbstractPosterior, apply


class Layer(eqx.Module):
    """`g(x) = mean(x) + W h(x)`, `h_r(x) = sum_k f_rk(t_k(x))`: the one layer of every model.

    What the inputs are read as, which processes run in them, how these are summarised and what is believed of the
    summaries are four objects; `mixing` W (R, Q) mixes Q latent functions into R outputs (the linear model of
    coregionalisation), None leaves them as they are.
    """

    inputs: AbstractInputs
    outputs: AbstractOutputs
    features: AbstractFeatures  # arrays lead with K, the number of directions
    posterior: AbstractPosterior
    mean: AbstractMean
    mixing: Float[Array, "R Q"] | None = parameter(FREE)

    @property
    def num_latents(self) -> int:
        """Q: how many functions there are before mixing."""
        return self.outputs.num_functions(self.posterior.shape[0])

    @property
    def num_outputs(self) -> int:
        """R."""
        return self.num_latents if self.mixing is None else self.mixing.shape[0]

    def moments(self, x: Float[Array, "N D"]) -> tuple[Float[Array, "N R"], Float[Array, "N R"]]:
        """Mean and variance of each output at each input."""
        mean, variance = self.outputs.marginals(self.features, self.posterior, self.inputs(x))
        if self.mixing is not None:
            variance = variance @ (self.mixing**2).T
        return self.finish(mean, x), variance

    def expectation(self, x: Float[Array, "N D"]) -> Float[Array, "N R"]:
        """The mean alone: no covariance is touched."""
        A, _ = self.outputs.summary(self.features, self.inputs(x))
        return self.finish(self.posterior.project(A), x)

    def draw(self, x: Float[Array, "N D"], normal: Float[Array, "S #N Q"]) -> Float[Array, "S N R"]:
        """S draws of the outputs at each input, from standard normal numbers, for each input or the same for all.

        They are right at each input by itself: the inputs' dependence is left out.
        """
        mean, root = self.outputs.rooted(self.features, self.posterior, self.inputs(x))
        return self.finish(_deviate(mean, root, normal), x)

    def draw_given(
        self, x: Float[Array, "N D"], e: Float[Array, "g B F"], normal: Float[Array, "S #N Q"]
    ) -> Float[Array, "S N R"]:
        """As `draw`, where all features are known: only what they leave open is drawn."""
        A, residual = self.outputs.summary(self.features, self.inputs(x))
        root = self.outputs.residual_root(self.features, A, residual)
        return self.finish(_deviate(apply(A, e), root, normal), x)

    def given(self, x: Float[Array, "N D"], e: Float[Array, "g B F"]) -> tuple[Array, Array]:
        """Mean (N, R) and variance (N, R) of the outputs where all features are known."""
        A, residual = self.outputs.summary(self.features, self.inputs(x))
        residual = jnp.broadcast_to(residual, (x.shape[0], self.num_latents))
        if self.mixing is not None:
            residual = residual @ (self.mixing**2).T
        return self.finish(apply(A, e), x), residual

    def finish(self, latent: Float[Array, "*S N Q"], x: Float[Array, "N D"]) -> Float[Array, "*S N R"]:
        """Latent functions mixed, and the mean added."""
        mixed = latent if self.mixing is None else latent @ self.mixing.T
        mean = self.mean(x)
        return mixed + (mean[None] if mixed.ndim > mean.ndim > 0 else mean)


def _deviate(
    mean: Float[Array, "N Q"], root: Float[Array, "N #Q"] | Float[Array, "N Q Q"], normal: Float[Array, "S #N Q"]
) -> Float[Array, "S N Q"]:
    if root.ndim == 2:
        return mean[None] + root[None] * normal
    return mean[None] + jnp.sum(root[None] * normal[:, :, None, :], axis=3)

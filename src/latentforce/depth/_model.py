"""The deep model: a stack of layers and a likelihood."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from .. import _checks
from ._layer import Layer
from ._likelihoods import AbstractLikelihood


class Model(eqx.Module):
    """Layers, each reading the outputs of the one before, and what is observed of the last.

    One layer is a shallow model. `train_filters` says when the coefficients of the ODEs begin to be trained: 0 from
    the start, k after k steps, None never (paper, `fig:timit`). `latentforce.build` makes models.

    !!! example

        >>> import numpy as np, latentforce as lf
        >>> x = np.linspace(0.0, 1.0, 20)
        >>> lf.build("dlfm-vfrf", x, x, depth=3, train_filters=None).depth
        3
    """

    layers: tuple[Layer, ...]
    likelihood: AbstractLikelihood
    train_filters: int | None = eqx.field(static=True, default=0)

    @property
    def depth(self) -> int:
        """The number of layers."""
        return len(self.layers)

    @property
    def num_inputs(self) -> int:
        """D: how many columns the inputs have."""
        return self.layers[0].inputs.num_inputs

    @property
    def hidden_widths(self) -> tuple[int, ...]:
        """How many standard normal numbers a draw of each hidden layer takes."""
        return tuple(layer.num_latents for layer in self.layers[:-1])

    def hidden(self, x: Float[Array, "N D"], normals: tuple[Float[Array, "S #N Q"], ...]) -> Float[Array, "S N R"]:
        """S draws of what the last layer reads, through all hidden ones; one "draw", the inputs, without any."""
        if not normals:
            return x[None]
        drawn = self.layers[0].draw(x, normals[0])
        for layer, normal in zip(self.layers[1:-1], normals[1:], strict=True):
            drawn = through(layer, drawn, normal)
        return drawn

    def moments(
        self, x: Float[Array, "N D"], normals: tuple[Float[Array, "S #N Q"], ...]
    ) -> tuple[Float[Array, "S N R"], Float[Array, "S N R"]]:
        """Means and variances of the last layer for each draw of the hidden ones: a mixture of S Gaussians."""
        hidden = self.hidden(x, normals)
        mean, variance = self.layers[-1].moments(hidden.reshape(-1, hidden.shape[2]))
        shape = (*hidden.shape[:2], mean.shape[1])
        return mean.reshape(shape), variance.reshape(shape)

    def takes(self, num_targets: int) -> None:
        """An error where the model is not one of so many targets."""
        functions = self.layers[-1].num_outputs
        if self.likelihood.num_functions(num_targets) != functions:
            raise ValueError(
                f"`y` must have as many columns as the data the model was built for, got {num_targets} for a model "
                f"of {functions} functions."
            )

    def kl(self) -> Float[Array, ""]:
        """The sum of the layers' Kullback-Leibler divergences from the prior."""
        return sum((layer.posterior.kl() for layer in self.layers[1:]), self.layers[0].posterior.kl())


def layered(model: Any) -> Model:
    """The model, or an error where it is an exact one."""
    return _checks.instance("model", model, Model, "a model of layers (for an exact one see `latentforce.condition`)")


def through(layer: Layer, x: Float[Array, "S N D"], normal: Float[Array, "S #N Q"]) -> Float[Array, "S N R"]:
    """One draw of a layer for each draw of its inputs."""
    S, N, _ = x.shape
    normal = jnp.broadcast_to(normal, (S, N, normal.shape[2]))
    drawn = layer.draw(x.reshape(S * N, -1), normal.reshape(1, S * N, -1))
    return drawn.reshape(S, N, -1)

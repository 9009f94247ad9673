"""latentforce: Gaussian processes driven through differential equations, shallow and deep, on JAX."""

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__
from .depth._likelihoods import Bernoulli as Bernoulli
from .depth._likelihoods import Gaussian as Gaussian
from .depth._likelihoods import HeteroscedasticGaussian as HeteroscedasticGaussian
from .depth._likelihoods import Poisson as Poisson
from .depth._likelihoods import StudentT as StudentT
from .depth._model import Model as Model
from .dynamics._filters import FirstOrder as FirstOrder
from .dynamics._filters import Identity as Identity
from .dynamics._filters import LinearODE as LinearODE
from .dynamics._filters import SecondOrder as SecondOrder
from .dynamics._forces import Matern as Matern
from .dynamics._forces import SquaredExponential as SquaredExponential
from .dynamics._process import Process as Process
from .features._driven import DrivenFourier as DrivenFourier
from .features._harmonic import HarmonicFourier as HarmonicFourier
from .features._points import InducingPoints as InducingPoints
from .features._random import RandomFourier as RandomFourier
from .inference._batches import Batches as Batches
from .inference._collapsed import absorb as absorb
from .inference._collapsed import collapse as collapse
from .inference._collapsed import collapsed_bound as collapsed_bound
from .inference._compression import compress as compress
from .inference._compression import compress_chunks as compress_chunks
from .inference._exact import condition as condition
from .inference._exact import log_marginal_likelihood as log_marginal_likelihood
from .inference._force import force as force
from .inference._functions import sample_functions as sample_functions
from .inference._laplace import laplace as laplace
from .inference._objectives import elbo as elbo
from .inference._objectives import importance_weighted_bound as importance_weighted_bound
from .inference._objectives import whole as whole
from .inference._prediction import hidden_marginals as hidden_marginals
from .inference._prediction import predict as predict
from .inference._prediction import predict_mean as predict_mean
from .inference._processes import distribute as distribute
from .inference._scores import scores as scores
from .inference._training import TrainingError as TrainingError
from .inference._training import fit as fit
from .presets import build as build
from .presets import presets as presets

if TYPE_CHECKING:
    from .estimators._base import ExtrapolationWarning as ExtrapolationWarning
    from .estimators._classifier import LatentForceClassifier as LatentForceClassifier
    from .estimators._regressor import LatentForceRegressor as LatentForceRegressor
    from .estimators._saving import load as load

__all__ = [
    "Batches",
    "Bernoulli",
    "DrivenFourier",
    "ExtrapolationWarning",
    "FirstOrder",
    "Gaussian",
    "HarmonicFourier",
    "HeteroscedasticGaussian",
    "Identity",
    "InducingPoints",
    "LatentForceClassifier",
    "LatentForceRegressor",
    "LinearODE",
    "Matern",
    "Model",
    "Poisson",
    "Process",
    "RandomFourier",
    "SecondOrder",
    "SquaredExponential",
    "StudentT",
    "TrainingError",
    "absorb",
    "build",
    "collapse",
    "collapsed_bound",
    "compress",
    "compress_chunks",
    "condition",
    "distribute",
    "elbo",
    "fit",
    "force",
    "hidden_marginals",
    "importance_weighted_bound",
    "laplace",
    "load",
    "log_marginal_likelihood",
    "predict",
    "predict_mean",
    "presets",
    "sample_functions",
    "scores",
    "whole",
]

_LAZY = {  # scikit-learn is slow to import, and not always needed
    "ExtrapolationWarning": ".estimators._base",
    "LatentForceClassifier": ".estimators._classifier",
    "LatentForceRegressor": ".estimators._regressor",
    "load": ".estimators._saving",
}


def __getattr__(name: str) -> Any:
    """Names whose modules are imported when they are first asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name], __name__), name)

"""latentforce: Gaussian processes driven through differential equations, shallow and deep, on JAX."""

from ._version import __version__ as __version__
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

__all__ = [
    "DrivenFourier",
    "FirstOrder",
    "HarmonicFourier",
    "Identity",
    "InducingPoints",
    "LinearODE",
    "Matern",
    "Process",
    "RandomFourier",
    "SecondOrder",
    "SquaredExponential",
]

"""What a filter or a feature family of your own is made of: the contracts, and how fields say what may be trained."""

from ._parameters import CONSTANT as CONSTANT
from ._parameters import FREE as FREE
from ._parameters import POSITIVE as POSITIVE
from ._parameters import parameter as parameter
from .dynamics._filters import AbstractFilter as AbstractFilter
from .features._base import AbstractFeatures as AbstractFeatures

__all__ = ["CONSTANT", "FREE", "POSITIVE", "AbstractFeatures", "AbstractFilter", "parameter"]

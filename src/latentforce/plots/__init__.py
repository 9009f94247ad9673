"""Pictures in scikit-learn's manner: each is an object that takes axes, draws on them and keeps what it drew."""

from ._calibration import CalibrationDisplay as CalibrationDisplay
from ._components import ComponentsDisplay as ComponentsDisplay
from ._features import FeaturesDisplay as FeaturesDisplay
from ._force import ForceDisplay as ForceDisplay
from ._layers import LayersDisplay as LayersDisplay
from ._learning import LearningCurveDisplay as LearningCurveDisplay
from ._posterior import PosteriorDisplay as PosteriorDisplay
from ._residuals import ResidualsDisplay as ResidualsDisplay

__all__ = [
    "CalibrationDisplay",
    "ComponentsDisplay",
    "FeaturesDisplay",
    "ForceDisplay",
    "LayersDisplay",
    "LearningCurveDisplay",
    "PosteriorDisplay",
    "ResidualsDisplay",
]

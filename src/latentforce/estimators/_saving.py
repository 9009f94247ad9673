"""Estimators as files: one call to save, one to load, with neither data nor arguments."""

import os
from dataclasses import asdict, replace
from typing import Any

import jax
import numpy as np
from sklearn.base import is_classifier

from ..depth._model import Model
from ..dynamics._filters import AbstractFilter, LinearODE
from ..files._format import ModelFileError, read, write
from ..files._structure import describe, rebuild
from ..inference._checkpoints import KIND as CHECKPOINT
from ..inference._exact import ExactModel
from ..inference._training import History
from ._choices import Choices
from ._engine import Fitted, in_float64
from ._table import Table
from ._targets import Targets

PASSING = ("checkpoint", "resume", "devices")  # arguments that mean nothing on another machine
CURVE = 1000  # points of the learning curve that are kept


def save(estimator: Any, path: str | os.PathLike) -> None:
    """Write a fitted estimator to `path`, at once or not at all."""
    arrays: dict[str, np.ndarray] = {}
    fitted = estimator.fitted_
    document = {
        "estimator": type(estimator).__name__,
        "parameters": _parameters(estimator),
        "table": estimator.table_.to_json(),
        "targets": estimator.targets_.to_json(),
        "choices": asdict(estimator.choices_),
        "seed": estimator.seed_,
        "names": [str(name) for name in getattr(estimator, "feature_names_in_", [])],
        "history": _record(estimator.history_),
        "record": estimator.record_,
        "bounds": list(estimator.bounds_),
        "classes": estimator.classes_.tolist() if is_classifier(estimator) else None,
        "models": describe(tuple(one.model for one in fitted.members), arrays),
    }
    data = {"data.x": fitted.x, "data.y": fitted.y}
    write(path, document, arrays | {name: part for name, part in data.items() if part is not None})


def load(path: str | os.PathLike) -> Any:
    """An estimator from a file that `save` wrote, ready to predict; on any machine, with any device.

    !!! example

        >>> import numpy as np, tempfile, latentforce as lf
        >>> x = np.linspace(0.0, 10.0, 50)[:, None]
        >>> regressor = lf.LatentForceRegressor("lfm-driven", steps=200).fit(x, np.sin(x[:, 0]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     regressor.save(f"{folder}/model.lforce")
        ...     again = lf.load(f"{folder}/model.lforce")
        >>> bool(np.all(again.predict(x) == regressor.predict(x)))
        True
    """
    from ._classifier import LatentForceClassifier
    from ._regressor import LatentForceRegressor

    document, arrays = read(path)
    if document.get("kind") == CHECKPOINT:
        raise ModelFileError(f"{path} is a checkpoint of a training, not a model: go on from it with `resume`.")
    kinds = {kind.__name__: kind for kind in (LatentForceRegressor, LatentForceClassifier)}
    try:
        estimator: Any = kinds[document["estimator"]](**_arguments(document["parameters"]))
        estimator.table_ = Table.from_json(document["table"])
        estimator.targets_ = Targets.from_json(document["targets"])
        estimator.choices_ = Choices(**document["choices"])
        estimator.seed_ = int(document["seed"])
        estimator.record_ = dict(document["record"])
        low, high = document["bounds"]
        estimator.bounds_ = float(low), float(high)
        if document["classes"] is not None:
            estimator.classes_ = np.asarray(document["classes"])
        estimator.history_ = History(**document["history"])
        estimator.n_iter_ = estimator.history_.steps[-1]
        estimator.n_features_in_ = len(estimator.table_.columns)
        if document["names"]:
            estimator.feature_names_in_ = np.asarray(document["names"], dtype=object)
        data = arrays.get("data.x"), arrays.get("data.y")
        best, *others = (Fitted(model, *data) for model in rebuild(document["models"], arrays))
        estimator.fitted_ = replace(best, others=tuple(others))
        _fits_together(estimator)
    except ModelFileError:
        raise
    except Exception as error:  # whatever a damaged file makes go wrong
        raise ModelFileError(f"{path} is damaged, or not a model of latentforce: {error}") from error
    return estimator


@in_float64
def _fits_together(estimator: Any) -> None:
    """Shapes of all arrays, columns and targets agree: traced, nothing is computed."""
    rows = np.zeros((1, max(sum(column.width for column in estimator.table_.columns), 1)))
    for member in estimator.fitted_.members:
        if not isinstance(member.model, Model | ExactModel):
            raise ValueError(f"it holds a {type(member.model).__name__} where a model should be.")
        own = replace(member, others=())  # what is traced is not kept
        _, width = jax.eval_shape(lambda own=own: own.predict(rows, 0).mean).shape
        if not width == len(estimator.targets_.scale) == len(estimator.targets_.shift):
            raise ValueError(f"its model predicts {width} targets, its units are of {len(estimator.targets_.scale)}.")


def _parameters(estimator: Any) -> dict[str, Any]:
    """Those arguments of the estimator that are plain values or a filter, but for those of that one machine."""
    plain: dict[str, Any] = {}
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, AbstractFilter):
            plain[name] = {"coefficients": np.asarray(value.coefficients, float).tolist()}
        elif isinstance(value, tuple | list) and name == "interval":
            plain[name] = [float(end) for end in value]
        elif (value is None or isinstance(value, bool | int | float | str)) and name not in PASSING:
            plain[name] = value
    return plain


def _arguments(parameters: dict[str, Any]) -> dict[str, Any]:
    def one(value: Any) -> Any:
        if isinstance(value, dict):
            return LinearODE(value["coefficients"])
        return tuple(value) if isinstance(value, list) else value

    return {name: one(value) for name, value in parameters.items()}


def _record(history: History) -> dict[str, Any]:
    """The history without its parameters, its curves thinned out."""
    every = max(len(history.objective) // CURVE, 1)
    kept = asdict(history) | {"parameters": []}
    return kept | {name: kept[name][::every] for name in ("objective", "gradient_norm")}

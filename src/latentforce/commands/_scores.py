"""How good a model is on data with targets, as numbers and as text."""

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from . import aligned
from ._data import Data, known

COVERAGES = (0.5, 0.8, 0.95)


def scores(estimator: Any, data: Data) -> dict[str, Any]:
    """For a classifier accuracy and log loss; for a regressor NMLL and, for each target, errors and coverages."""
    X, y = known(estimator, data.inputs), data.y(classes=is_classifier(estimator))
    common = {"rows": len(X), "dropped": data.dropped}
    if is_classifier(estimator):
        return common | {"accuracy": float(estimator.score(X, y)), "log_loss": -estimator.log_score(X, y)}
    levels = [(1 + sign * coverage) / 2 for coverage in COVERAGES for sign in (-1, 1)]
    shape = (len(X), len(data.targets.columns))
    mean, truth = np.reshape(estimator.predict(X), shape), np.reshape(np.asarray(y), shape)
    bands = np.reshape(estimator.predict_quantiles(X, levels), (*shape, len(COVERAGES), 2))
    of_each = {name: _of_target(mean[:, k], bands[:, k], truth[:, k]) for k, name in enumerate(data.targets.columns)}
    return common | {"nmll": -estimator.log_score(X, y), "targets": of_each}


def _of_target(mean: np.ndarray, bands: np.ndarray, truth: np.ndarray) -> dict[str, float | None]:
    seen = ~np.isnan(truth)
    error, bands, truth = (mean - truth)[seen], bands[seen], truth[seen]
    spread = float(np.mean((truth - truth.mean()) ** 2))
    inside = np.mean((bands[..., 0] <= truth[:, None]) & (truth[:, None] <= bands[..., 1]), axis=0)
    return {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mae": float(np.mean(np.abs(error))),
        "r2": 1 - float(np.mean(error**2)) / spread if spread > 0 else None,  # of a constant there is none
    } | {f"coverage_{100 * coverage:.0f}": float(share) for coverage, share in zip(COVERAGES, inside, strict=True)}


def told(found: dict[str, Any]) -> str:
    """The scores as text."""
    if "accuracy" in found:
        return aligned([("rows", found["rows"]), ("accuracy", found["accuracy"]), ("log loss", found["log_loss"])])
    header = ("", "RMSE", "MAE", "R2", *(f"in {coverage:.0%} band" for coverage in COVERAGES))
    rows = [
        (
            name,
            *("-" if value is None else f"{value:.1%}" if "coverage" in key else value for key, value in one.items()),
        )
        for name, one in found["targets"].items()
    ]
    return f"rows {found['rows']}, NMLL {found['nmll']:.4g}\n\n{aligned([header, *rows])}"

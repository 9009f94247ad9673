"""What an estimator chooses by itself, from the size of the data."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from .._checks import count, not_negative
from ..presets import PRESETS

MOST_FEATURES = 2000  # whose Gram matrix is factorised in every step
FEW = 500  # rows, for any number of columns
WHOLE = 2000  # rows that a step sees all of


@dataclass(frozen=True)
class Choices:
    """The options of a model and of its training, all settled."""

    width: int | None
    num_frequencies: int
    directions: int | None
    covariance: str
    optimizer: str  # "adam" for the bound, or "lbfgs" for the likelihood or the bound at its best q
    steps: int
    batch_size: int | None
    learning_rate: float
    num_samples: int
    restarts: int
    validation_fraction: float  # of the rows, held out to take the state that predicts them best

    @property
    def model(self) -> dict[str, Any]:
        """Those that `build` takes."""
        names = ("width", "num_frequencies", "directions", "covariance")
        return {name: value for name, value in asdict(self).items() if name in names}

    def effective(self, deep: bool) -> dict[str, Any]:
        """Those with an effect on a deep model, or on a shallow one."""
        idle = {"learning_rate", "num_samples"} if self.optimizer == "lbfgs" else set()
        idle |= set() if deep else {"num_samples"}
        idle |= set() if self.validation_fraction else {"validation_fraction"}
        return {name: value for name, value in asdict(self).items() if name not in idle}


GIVABLE = tuple(field.name for field in fields(Choices) if field.name != "optimizer")  # what the user may settle


def few_rows(name: str, num_rows: int, num_columns: int) -> bool:
    """Whether a model with learned directions has so few rows that it could follow single ones."""
    return _searches(name, num_columns) and num_rows < max(8 * num_columns**2, FEW)


def averaged(name: str, num_rows: int, num_columns: int) -> bool:
    """Whether rows leave open which directions a model takes: then predictions are of several starting points."""
    deep = _searches(name, num_columns) and PRESETS[name].deep
    return few_rows(name, num_rows, num_columns) or (deep and num_rows <= WHOLE)


def _searches(name: str, num_columns: int) -> bool:
    """Whether a model has directions to learn."""
    return not PRESETS[name].joint and num_columns > 1


def choose(name: str, num_rows: int, num_columns: int, collapses: bool, **given: Any) -> Choices:
    """All choices for that preset and so much data; whatever is `given` and not None is taken.

    Several inputs interact, which additive layers do not see: they are read along twice as many learned directions. A q
    with a block for each direction then keeps the cost linear in them. Deep models of several inputs train well with
    one pair of draws of the hidden layers. Where the best q is known in closed form (`collapses`: Gaussian noise, all
    targets observed), one layer of not too many features needs no q to be learned.

    Directions are not integrated over, and with few rows (below 8 D^2, or 500) they can follow the noise. Predictions
    are then averaged over trainings from several starting points, and there are fewer features; deep models have one
    direction for each input and are narrow, shallow ones never have more weights of directions than a quarter of the
    rows, exact ones, as they see everything, than an eighth.
    In deep models up to 2000 rows leave open which directions matter: rather than to follow one choice to its end,
    predictions are averaged over shorter trainings.
    """
    for key in ("steps", "restarts", "width", "num_frequencies", "directions", "batch_size", "num_samples"):
        if given.get(key) is not None:
            count(key, given[key])
    rate = given.get("learning_rate")
    if rate is not None and not callable(rate):
        not_negative("learning_rate", rate)
    preset, several, few = PRESETS[name], num_columns > 1, few_rows(name, num_rows, num_columns)
    many_starts = averaged(name, num_rows, num_columns)
    projected = _searches(name, num_columns)
    exact = preset.features is None
    weights = num_rows // (8 if exact else 4)  # of all directions together
    supported = (1 if few else 2) * num_columns if preset.deep else max(weights // num_columns, 2)
    values: dict[str, Any] = {
        "width": min(num_columns, 3 if few else 8) if preset.deep else None,
        "num_frequencies": (10 if few else 20) if several else 40,
        "directions": min(2 * num_columns, supported) if projected else None,
        "covariance": "block" if projected else "full",
        "steps": (2000 if many_starts else 4000) if preset.deep else 1000,
        "batch_size": 1000 if num_rows > WHOLE else None,
        "learning_rate": 0.05,
        "num_samples": 2 if several else 4,
        "restarts": 4 if many_starts else 1,
        "validation_fraction": 0.0,
    }
    values |= {key: value for key, value in given.items() if value is not None}
    share = values["validation_fraction"]
    if not 0 <= share < 1 or (exact and share > 0):
        wanted = "0 for an exact model" if exact else "from 0 to below 1"
        raise ValueError(f"`validation_fraction` must be {wanted}, got {share!r}.")
    features = 2 * values["num_frequencies"] * (values["directions"] or num_columns)
    by_steps = given.get("batch_size") is not None or share > 0
    closed = not preset.deep and collapses and features <= MOST_FEATURES and not by_steps
    values["optimizer"] = "lbfgs" if exact or closed else "adam"
    if values["optimizer"] == "lbfgs":
        values |= {"batch_size": None, "steps": given.get("steps") or 200}
    return Choices(**values)

"""What an estimator chooses by itself, from the size of the data."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from ..presets import PRESETS

MOST_FEATURES = 2000  # whose Gram matrix is factorised in every step
ENOUGH = 100  # rows to hold some out


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


GIVABLE = tuple(field.name for field in fields(Choices) if field.name != "optimizer")  # what the user may settle


def choose(name: str, num_rows: int, num_columns: int, collapses: bool, **given: Any) -> Choices:
    """All choices for that preset and so much data; whatever is `given` and not None is taken.

    Several inputs interact, which additive layers do not see: they are read along twice as many learned directions. A q
    with a block for each direction then keeps the cost linear in them. Deep models of several inputs train as well with
    one draw of the hidden layers as with many. Directions are not integrated over, and with few rows they can follow
    the noise: they have no more weights than a quarter of the rows, and where that makes them fewer, rows held out say
    which state of a deep model to take. Where the best q is known in closed form (`collapses`: Gaussian noise, all
    targets observed), one layer of not too many features needs no q to be learned.
    """
    preset = PRESETS[name]
    several = num_columns > 1
    joint = preset.features in ("points", None) and not preset.ode
    projected, most = several and not joint, num_rows // (4 * num_columns)
    few = preset.deep and projected and most < 2 * num_columns
    values: dict[str, Any] = {
        "width": min(num_columns, 8) if preset.deep else None,
        "num_frequencies": 20 if several else 40,
        "directions": max(min(2 * num_columns, most), 2) if projected else None,
        "covariance": "full" if not several or joint else "block",
        "steps": (2000 if few else 4000) if preset.deep else 1000,
        "batch_size": 1000 if num_rows > 2000 else None,
        "learning_rate": 0.05,
        "num_samples": 1 if several else 5,
        "restarts": 1,
        "validation_fraction": 0.1 if few and num_rows >= ENOUGH else 0.0,
    }
    values |= {key: value for key, value in given.items() if value is not None}
    share, exact = values["validation_fraction"], preset.features is None
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

"""What was fitted, in words: the model by its place on the three axes, and each choice with its reason."""

from typing import Any

from ..depth._model import Model
from ..estimators._choices import few_rows
from ..presets import PRESETS
from ._words import count, number

FEATURES = {
    "points": "Each process is summarised by its values at {points} inducing points.",
    "random": "Each process is summarised by waves at {frequencies} random frequencies.",
    "harmonic": "Each process is summarised by {frequencies} harmonics of an interval around the data.",
    "driven": "Each process is summarised by the noise that drives it, expanded in waves of {frequencies} frequencies.",
    None: "Nothing is summarised: inference is exact.",
}
NAMES = {
    "width": "width of the hidden layers",
    "num_frequencies": "frequencies",
    "directions": "learned directions",
    "covariance": "covariance of the posterior",
    "optimizer": "optimizer",
    "steps": "steps",
    "batch_size": "rows in each step",
    "learning_rate": "learning rate",
    "num_samples": "draws of the hidden layers in each step",
    "restarts": "starting points",
    "validation_fraction": "share of rows held out",
}


def model_words(estimator: Any) -> list[str]:
    """Sentences that say what kind of model it is, to someone who has not heard of it."""
    preset, model = PRESETS[estimator.model], estimator.model_
    depth = model.depth if isinstance(model, Model) else 1
    frequencies = estimator.choices_.num_frequencies
    stack = f"It has {depth} layers, each reading what the one before makes of the inputs." if depth > 1 else ""
    physics = (
        "Hidden forces, which are Gaussian processes, push linear differential equations, and what these answer is "
        "added up; so the model says not only what happens but also what drove it."
        if preset.ode
        else "It is a sum of Gaussian processes, smooth random functions; no differential equation is assumed."
    )
    return [
        f"The model is `{estimator.model}`: {preset.about}.",
        stack,
        physics,
        FEATURES[preset.features].format(points=2 * frequencies + 1, frequencies=frequencies),
    ]


def choices(estimator: Any) -> list[tuple[str, str, str]]:
    """Name, value and reason of everything that was settled before training."""
    reasons, rows = _reasons(estimator), []
    for name, value in estimator.choices_.effective(PRESETS[estimator.model].deep).items():
        given = estimator.get_params(deep=False).get(name) is not None
        if value is None and name != "batch_size":
            continue
        reason = "You asked for it." if given else reasons.get(name, "The default.")
        rows.append((NAMES.get(name, name), "all" if value is None else number(value), reason))
    return rows


def _reasons(estimator: Any) -> dict[str, str]:
    preset, chosen = PRESETS[estimator.model], estimator.choices_
    rows, inputs = estimator.record_["rows"], max(len(estimator.table_.names), 1)
    several = inputs > 1
    if preset.features is None:
        way = "The likelihood of an exact model can be maximised itself, by quasi-Newton steps."
    elif chosen.optimizer == "lbfgs":
        way = "One layer and Gaussian noise: the best posterior is known in closed form, only parameters are searched."
    else:
        way = "The objective is estimated anew in each step, from draws or from some of the rows: that takes Adam."
    most = "three, as rows are few" if few_rows(estimator.model, rows, inputs) else "eight"
    return {
        "width": f"One for each input, up to {most}." if several else "One, as there is one input.",
        "num_frequencies": "Several inputs share the work, so each needs fewer."
        if several
        else "Plenty for one input.",
        "directions": f"{count(inputs, 'input')} may act together; along oblique directions the model sees that.",
        "covariance": {
            "full": "Few enough features to keep all correlations.",
            "block": "A block for each direction keeps the cost in proportion to the number of directions.",
        }.get(chosen.covariance, "The default."),
        "optimizer": way,
        "steps": "Enough for a search of this kind to settle; the learning curve shows whether it did.",
        "batch_size": f"Few enough to see all {number(rows)} rows in every step."
        if chosen.batch_size is None
        else f"So each step costs the same for any number of rows; there are {number(rows)}.",
        "learning_rate": "Large at first and falling to zero along a cosine.",
        "num_samples": "A pair is enough where there are several inputs."
        if several
        else "Some, as they are cheap here.",
        "restarts": "One: it follows the data."
        if chosen.restarts == 1
        else "Few rows leave open which directions matter: predictions are averaged over several starts.",
    }

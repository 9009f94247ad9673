"""What was fitted, in words and numbers: physical parameters in the user's units, the training, and what was chosen."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from ..depth._inputs import Bounded, Coordinates, Jointly
from ..depth._likelihoods import Gaussian, HeteroscedasticGaussian, StudentT
from ..depth._outputs import SharedForces
from ..dynamics._filters import AbstractFilter, FirstOrder, LinearODE, SecondOrder
from ..dynamics._process import Process
from ..inference._exact import ExactModel
from ..presets import PRESETS
from ._table import Column, Table

MOST = 6  # values that are listed one by one; of more, the middle one and the range are
FEATURES = {"points": "inducing points", "random": "random Fourier features", None: "exact inference"}
FEATURES |= {"harmonic": "variational Fourier features", "driven": "driven Fourier features"}

Labels = tuple[list[str] | None, ...]  # the names along each axis of some values


class Row(NamedTuple):
    """One line of a summary."""

    section: str
    name: str
    value: float | int | str
    unit: str = ""


@dataclass(frozen=True)
class Summary:
    """A table of what was fitted: print it, or take its `rows`.

    !!! example

        >>> from latentforce.estimators._summary import Row, Summary
        >>> print(Summary((Row("parameters", "decay rate", 0.25, "1 / s"),)))
        parameters
          decay rate  0.25  1 / s
    """

    rows: tuple[Row, ...]

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """`{section: {name: value}}`, for machines."""
        return {section: {row.name: row.value for row in rows} for section, rows in self._sections()}

    def __str__(self) -> str:
        lines = []
        for section, rows in self._sections():
            names = max(len(row.name) for row in rows)
            values = max((len(_value(row)) for row in rows if row.unit), default=0)  # what has a unit lines up
            lines.append(section)
            lines += [f"  {row.name:<{names}}  {_value(row):<{values}}  {row.unit}".rstrip() for row in rows]
        return "\n".join(lines)

    def _sections(self) -> Iterator[tuple[str, list[Row]]]:
        for section in dict.fromkeys(row.section for row in self.rows):
            yield section, [row for row in self.rows if row.section == section]


def summarize(estimator: Any) -> Summary:
    """The summary of a fitted estimator."""
    rows = [Row("model", *pair) for pair in _model(estimator).items()]
    rows += [Row("parameters", *row) for row in _parameters(estimator)]
    rows += [Row("training", *row) for row in _training(estimator)]
    chosen = estimator.choices_.effective(PRESETS[estimator.model].deep)
    rows += [Row("choices", name, value) for name, value in chosen.items() if value is not None]
    return Summary(tuple(rows))


def _value(row: Row) -> str:
    return f"{row.value:.4g}" if isinstance(row.value, float) else str(row.value)


def _model(estimator: Any) -> dict[str, str | int]:
    preset = PRESETS[estimator.model]
    layers = estimator.model_.depth if hasattr(estimator.model_, "depth") else 1
    return {
        "name": estimator.model,
        "features": FEATURES[preset.features],
        "dynamics": "a hidden force through an ODE" if preset.ode else "none",
        "layers": layers,
        "inputs": ", ".join(column.name for column in estimator.table_.columns),
        "targets": ", ".join(estimator.record_["targets"]),
        **({"classes": ", ".join(map(str, estimator.classes_))} if is_classifier(estimator) else {}),
        "likelihood": type(estimator.model_.likelihood).__name__,
    }


def _training(estimator: Any) -> Iterator[tuple[str, float | int | str, str]]:
    history = estimator.history_
    tail = history.objective[-max(len(history.objective) // 10, 1) :]
    yield "rows", estimator.record_["rows"], ""
    yield "steps", history.steps[-1], ""
    yield "ended", history.stopped, ""
    yield "objective", float(np.mean(tail)), "nats for each row"
    yield "time", float(estimator.record_["seconds"]), "s"
    yield "device", estimator.record_["device"], ""


class Times(NamedTuple):
    """What the times of a layer are for the user: the size of one, its name, and the names of the directions."""

    span: Any = 1.0  # a number, or one for each direction
    unit: str = "unit of the hidden function"
    directions: list[str] | None = None


def _parameters(estimator: Any) -> Iterator[tuple[str, float | str, str]]:
    """Names, values and units of everything physical, layer by layer."""
    model, targets = estimator.model_, estimator.targets_
    layers: list[Any] = [model] if isinstance(model, ExactModel) else list(model.layers)
    for number, layer in enumerate(layers):
        last = number == len(layers) - 1
        where = f"layer {number + 1}: " if len(layers) > 1 else ""
        times = _times(layer.inputs, estimator.table_) if number == 0 else Times()
        outputs, scale = (list(targets.names), targets.scale) if last else (None, np.ones(1))
        for name, values, unit, labels in _layer(layer, times, outputs, scale * first_coefficient(estimator.filter)):
            yield from _listed(where + name, values, unit, labels)
    if len(layers) == 1 and estimator.train_filters is not None and _fast(layers[0]):
        yield "the ODE, learned", "answers so fast that the force is nearly the signal itself", ""
    yield from _noise(model.likelihood, targets)


def _fast(layer: Any) -> bool:
    """Whether an ODE lags by less than a tenth of the time in which its force changes: then data hardly tell it."""
    if _shared(layer) is not None:
        return False
    process = _process(layer)
    coefficients = _coefficients(process.filter)
    return len(coefficients) > 1 and bool(
        np.all(10 * coefficients[1] / coefficients[0] < np.asarray(process.force.lengthscale))
    )


def _shared(layer: Any) -> SharedForces | None:
    """The outputs of a layer whose forces drive several of them."""
    outputs = getattr(layer, "outputs", None)
    return outputs if isinstance(outputs, SharedForces) else None


def _process(layer: Any) -> Process:
    """Of an exact model, or of a layer whose outputs have forces of their own."""
    return layer.process if isinstance(layer, ExactModel) else layer.outputs.process


def _layer(
    layer: Any, times: Times, outputs: list[str] | None, scale: np.ndarray
) -> Iterator[tuple[str, np.ndarray, str, Labels]]:
    """The parameters of one layer: names, values (outputs or forces, directions), units, and names of their axes."""
    own: Labels = (outputs, times.directions)
    shared = _shared(layer)
    if shared is not None:
        forces, filters, of_force = shared.driving, shared.filter, (None, times.directions)
        yield "sensitivity", np.asarray(shared.sensitivity), "", (outputs, None, times.directions)
        scale = np.ones(1)  # of a force that drives several outputs: in the sensitivities
    else:
        process = _process(layer)
        forces, filters, of_force = process.force, process.filter, own
    yield "length-scale", np.asarray(forces.lengthscale) * times.span, _several(times.unit), of_force
    deviation = np.sqrt(np.asarray(forces.variance))
    if shared is None:
        deviation = deviation / _coefficients(filters)[0]  # what a learned ODE is read with: see `predict_force`
    scale = scale if len(scale) == deviation.shape[0] else scale[:1]
    of_what = " of the force" if list(_physics(filters)) else ""
    yield f"standard deviation{of_what}", deviation * scale.reshape(-1, *[1] * (deviation.ndim - 1)), "", of_force
    for name, values, power, unit in _physics(filters):
        yield name, values * np.asarray(times.span) ** power, unit.format(times.unit), own


def _times(inputs: Any, table: Table) -> Times:
    """Of the first layer."""
    inner = inputs.inner if isinstance(inputs, Bounded) else inputs
    by_column = isinstance(inner, Coordinates | Jointly)
    if table.single is not None:
        return Times(table.single.span * (1.0 if by_column else 0.5), _unit(table.single))
    if not by_column:
        return Times(1.0, "half range of that direction")
    spans = [_span(column) for column in table.columns for _ in range(column.width)]
    return Times(np.asarray(spans or [1.0]), "unit of that input", table.names or None)


def _several(unit: str) -> str:
    first, _, rest = unit.partition(" ")
    return f"{first}s {rest}".rstrip() if first != "half" else unit.replace("range", "ranges")


def _span(column: Column) -> float:
    return 1.0 if column.kind == "category" else column.span


def _unit(column: Column) -> str:
    return "second" if column.kind in ("time", "duration") else f"unit of {column.name}"


def _physics(filter: AbstractFilter) -> Iterator[tuple[str, np.ndarray, int, str]]:
    """What an engineer calls the parameters of an ODE: name, values, power of time in their unit, and the unit."""
    coefficients = _coefficients(filter)
    match len(coefficients) - 1:
        case 1:
            yield "decay rate", coefficients[0] / coefficients[1], -1, "per {}"
        case 2:
            stiffness, damping, mass = coefficients
            yield "natural frequency", np.sqrt(stiffness / mass), -1, "rad per {}"
            yield "damping ratio", damping / (2 * np.sqrt(stiffness * mass)), 0, ""
        case order if order > 2:
            poles = np.apply_along_axis(np.roots, 0, np.stack(coefficients[::-1]))
            yield "slowest decay rate", np.min(np.abs(poles.real), axis=0), -1, "per {}"


def first_coefficient(filter: AbstractFilter | str) -> float:
    """Of the ODE that an estimator was asked for; it is one where that has a name."""
    return 1.0 if isinstance(filter, str) else float(filter.coefficients[0])


def _coefficients(filter: AbstractFilter) -> list[np.ndarray]:
    """`a0, a1, ...`, each with the leading axes of the filter's arrays."""
    if isinstance(filter, FirstOrder):
        return [np.asarray(part, float) for part in (filter.alpha, filter.beta)]
    if isinstance(filter, SecondOrder):
        return [np.asarray(part, float) for part in (filter.stiffness, filter.damping, filter.mass)]
    if isinstance(filter, LinearODE):
        return list(np.moveaxis(np.asarray(filter._coefficients, float), -1, 0))
    return [np.ones(())]


def _noise(likelihood: Any, targets: Any) -> Iterator[tuple[str, float | str, str]]:
    names, scale = list(targets.names), targets.scale
    if isinstance(likelihood, Gaussian):
        yield from _listed("noise (standard deviation)", np.sqrt(np.asarray(likelihood.variance)) * scale, "", (names,))
    if isinstance(likelihood, StudentT | HeteroscedasticGaussian):
        yield from _listed("scale of the noise", np.asarray(likelihood.scale) * scale, "", (names,))
    if isinstance(likelihood, StudentT):
        yield "degrees of freedom of the noise", float(likelihood.df), ""


def _listed(name: str, values: np.ndarray, unit: str, labels: Labels) -> Iterator[tuple[str, float | str, str]]:
    """Each value by the names of its axes that have several; or their middle and range, where there are many."""
    values = np.atleast_1d(values)
    if values.size > MOST:
        middle, low, high = np.median(values), values.min(), values.max()
        yield name, f"{middle:.4g} ({low:.4g} to {high:.4g}, {values.size} of them)", unit
        return
    named = labels[-values.ndim :] if values.ndim <= len(labels) else (None,) * values.ndim
    for index in np.ndindex(*values.shape):
        parts = [
            known[k] if known is not None and len(known) == size else f"number {k + 1}"
            for k, size, known in zip(index, values.shape, named, strict=True)
            if size > 1
        ]
        yield f"{name}, {', '.join(parts)}" if parts else name, float(values[index]), unit

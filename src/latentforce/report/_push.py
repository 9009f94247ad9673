"""The section on the hidden force: what pushed the system."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes

from ..depth._inputs import Bounded, Directions, Jointly, normalized
from ..depth._model import Model
from ..plots import ForceDisplay
from ..presets import PRESETS
from ._facts import Subject
from ._html import Section, figure, table
from ._svg import nowhere, pictures, wide
from ._words import NARROW, moment, names, number, percent

MOST = 4  # forces that are drawn


class Where(NamedTuple):
    """Which force: see `predict_force`."""

    layer: int
    index: int
    direction: int


def force(subject: Subject) -> Section | None:
    """The forces that say most, with how far they reach and where they are surely not zero."""
    estimator = subject.estimator
    if not PRESETS[estimator.model].ode:
        return None
    chosen = _strongest(estimator)
    displays = [ForceDisplay.from_estimator(estimator, **where._asdict(), ax=nowhere()) for where in chosen]

    def draw(axes: list[Axes]) -> None:
        for display, ax in zip(displays, axes, strict=True):
            display.plot(ax)

    labels = [f"The {display.ylabel} along {display.xlabel}" for display in displays]
    alone = len(displays) == 1
    drawn = wide(lambda ax: draw([ax]), "force", labels[0]) if alone else pictures(draw, "force", labels)
    caption = f"Mean of the hidden force with 50 and 95 % bands, which take the parameters as known. {_words(displays)}"
    return Section("force", "Hidden force", figure(drawn, caption) + _table(estimator, chosen, displays))


def _strongest(estimator: Any) -> list[Where]:
    """Of one input the forces of all layers, else of the first; those whose posterior has moved most from the prior."""
    model = estimator.model_
    if not isinstance(model, Model):
        return [Where(0, 0, direction) for direction in range(min(len(model.process.force.variance), MOST))]
    moved: dict[Where, float] = {}
    for number_of, layer in enumerate(model.layers if estimator.table_.single is not None else model.layers[:1]):
        groups, blocks, _ = layer.posterior.shape
        forces = 0 if isinstance(layer.inputs, Jointly) else layer.outputs.num_forces(groups)
        for index in range(forces):
            for direction in range(groups * blocks // forces):
                place = layer.outputs.block(index, direction)
                moved[Where(number_of, index, direction)] = float(np.linalg.norm(layer.posterior.mean[place]))
    return sorted(sorted(moved, key=lambda where: -moved[where])[:MOST])


def _sure(display: ForceDisplay) -> float:
    """The share of the range over which the 95 % band leaves zero out."""
    return float(np.mean(np.abs(display.mean) > 1.96 * display.std))


def _words(displays: list[ForceDisplay]) -> str:
    sure = [percent(_sure(display), 0) for display in displays]
    if max(map(_sure, displays)) == 0:
        return "Nowhere do the data say that it is surely not zero."
    if len(displays) == 1:
        return f"Over {sure[0]} of the range it is surely not zero: there the 95 % band leaves zero out."
    return f"The 95 % bands leave zero out over {names(sure, MOST)} of the range."


def _table(estimator: Any, chosen: list[Where], displays: list[ForceDisplay]) -> str:
    """How far each force reaches, and what learned directions are made of."""
    mixed = [_made_of(estimator, where) for where in chosen]
    rows = []
    for display, made_of in zip(displays, mixed, strict=True):
        ends = [int(pick(display.mean)) for pick in (np.argmin, np.argmax)]
        span = display.t.max() - display.t.min()
        reach = [f"{number(float(display.mean[k]), 3)} at {moment(display.t[k], span)}" for k in ends]
        rows.append([f"{display.ylabel} along {display.xlabel}", *([made_of] if any(mixed) else []), *reach])
    return table(["force", *(["which is mostly"] if any(mixed) else []), "lowest", "highest"], rows)


def _made_of(estimator: Any, where: Where) -> str:
    """The inputs, each scaled to its range, that weigh most in a learned direction."""
    model = estimator.model_
    inputs = (model.layers[where.layer] if isinstance(model, Model) else model).inputs
    inputs = inputs.inner if isinstance(inputs, Bounded) else inputs
    if where.layer > 0 or not isinstance(inputs, Directions):
        return ""
    weights = np.asarray(normalized(jnp.asarray(inputs.weights)))[where.direction]
    largest = np.argsort(-np.abs(weights))[:3]
    return ", ".join(f"{number(float(weights[k]), 2)}{NARROW}×{NARROW}{estimator.table_.names[k]}" for k in largest)

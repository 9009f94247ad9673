"""Sections on how well it predicts, and why: pictures, with what one sees in words and numbers."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes

from ..depth._model import Model
from ..plots import (
    CalibrationDisplay,
    ComponentsDisplay,
    LayersDisplay,
    PosteriorDisplay,
    ResidualsDisplay,
)
from ..plots._beliefs import labelled
from ..plots._source import parts
from ._facts import Score, Subject, by_chance, caution
from ._html import Section, figure, heading, paragraph, table
from ._svg import SMALL, nowhere, pictures, wide
from ._words import count, names, number, percent

MOST_OUTPUTS = 4  # targets or classes that are drawn
VERDICTS = {
    "as": "as many as they should",
    "fewer": "fewer than they should: they are too narrow",
    "more": "more than they should: they are wider than they need be",
}
HOW = "Give data to the report to see it: `report(estimator, X, y)`, or `latentforce report MODEL DATA`."


def fit(subject: Subject) -> Section:
    """Predictions beside what was observed."""
    single = len(parts(subject.estimator)) == 1
    if subject.classifier:
        body = _each(subject, _probabilities) if single else ""
        return Section("fit", "Fit", _accuracy(subject) + body)
    if single:
        return Section("fit", "Fit", _each(subject, _series))
    if not subject.judged:
        return Section("fit", "Fit", _missing("Predictions beside what was observed", "`X` and `y`"))
    return Section("fit", "Fit", _each(subject, _scatter))


def _each(subject: Subject, draw: Callable[[Subject, int], str]) -> str:
    """One picture for each target or class, under its name where there are several."""
    outputs = subject.classes or subject.targets
    chosen = range(1, 2) if subject.classifier and len(outputs) == 2 else range(min(len(outputs), MOST_OUTPUTS))
    bodies = [(heading(outputs[k]) if len(chosen) > 1 else "") + draw(subject, k) for k in chosen]
    rest = outputs[MOST_OUTPUTS:]
    return "".join(bodies) + (paragraph(f"Not drawn: {names(rest, 10)}.") if rest else "")


def _series(subject: Subject, output: int) -> str:
    estimator, name = subject.estimator, subject.targets[output]
    display = PosteriorDisplay.from_estimator(estimator, subject.X, subject.y, output=output, ax=nowhere())
    caption = f"{name} along {parts(estimator)[0][0].name}: the mean, bands that hold 50 and 95 % of observations"
    caption += ", and five functions drawn from the posterior."
    if subject.judged:
        caption += f" Dots are the data. {_errors(subject.scores[output])}"
    return figure(wide(display.plot, f"fit-{output}", caption), caption)


def _scatter(subject: Subject, output: int) -> str:
    found, name = subject.judged[output], subject.targets[output]

    def draw(axes: list[Axes]) -> None:
        ResidualsDisplay(found.y, found.mean, found.std, name=name).plot(axes[0], kind="actual_vs_predicted")

    caption = f"Observed against predicted {name}; bars hold 95 %. {_errors(subject.scores[output])}"
    return figure(pictures(draw, f"fit-{output}", [caption]), caption, "single")


def _errors(score: Score) -> str:
    return (
        f"On {count(score.rows, 'row')} predictions are off by {number(score.rmse, 3)} (root mean square) and explain "
        f"{percent(score.explained)} of the variance."
    )


def _probabilities(subject: Subject, output: int) -> str:
    name = subject.classes[output]
    display = PosteriorDisplay.from_estimator(subject.estimator, output=output, ax=nowhere())
    caption = f"Probability of {name} along {parts(subject.estimator)[0][0].name}, with 50 and 95 % bands for it."
    return figure(wide(display.plot, f"fit-{output}", caption), caption)


def accuracy(subject: Subject) -> tuple[float, float]:
    """The share of rows whose class is predicted, and that of the most frequent class."""
    right = float(np.mean(subject.estimator.predict(subject.X) == np.asarray(subject.y)))
    return right, float(np.unique(np.asarray(subject.y), return_counts=True)[1].max() / subject.rows)


def _accuracy(subject: Subject) -> str:
    if subject.y is None:
        return _missing("How many classes are predicted rightly", "`X` and `y`")
    right, base = accuracy(subject)
    return paragraph(
        f"Of {count(subject.rows, 'row')} it names the class of {percent(right)}; always naming the most frequent "
        f"one would be right for {percent(base)}."
    ) + _confusion(subject)


def _confusion(subject: Subject) -> str:
    """How often each class was named for each, where that is not too much to read."""
    names_of, seen = subject.estimator.classes_, np.asarray(subject.y)
    if len(names_of) > 10:
        return ""
    named = subject.estimator.predict(subject.X)
    rows = [
        [f"is {one}", *(number(int(np.sum((seen == one) & (named == other)))) for other in names_of)]
        for one in names_of
    ]
    return table(["", *(f"named {other}" for other in names_of)], rows, right=range(1, len(names_of) + 1))


def layers(subject: Subject) -> Section | None:
    """What the layers of a deep model make of the input."""
    estimator, model = subject.estimator, subject.estimator.model_
    if not isinstance(model, Model) or model.depth < 2:
        return None
    columns = [column for column, _ in parts(estimator) if column.kind != "category"]
    if not columns:
        return None
    name = columns[0].name
    labels = [f"Layer {k + 1} along {name}" for k in range(model.depth)]

    def draw(axes: list[Axes]) -> None:
        LayersDisplay.from_estimator(estimator, subject.X, column=name, ax=axes)

    widths = names([count(layer.num_outputs, "unit") for layer in model.layers], 9)
    caption = f"Mean and 95 % band of the layers' outputs along {name}, in the model's scaled units ({widths}"
    caption += "). " if len(columns) == 1 else "; other inputs held at typical values). "
    caption += "A straight line in a hidden layer hands the input on as it is; a bend or a step changes its pace."
    return Section("layers", "Hidden layers", figure(pictures(draw, "layers", labels), caption))


def components(subject: Subject) -> Section | None:
    """What each input does."""
    several = len(parts(subject.estimator)) > 1
    if subject.classifier or not several:
        return None
    if subject.x is None:
        return Section("components", "Effects of the inputs", _missing("What each input does", "`X`"))
    return Section("components", "Effects of the inputs", _each(subject, _effects))


def _effects(subject: Subject, output: int) -> str:
    most = min(9, len(parts(subject.estimator)))
    axes = [nowhere() for _ in range(most)]
    display = ComponentsDisplay.from_estimator(subject.estimator, subject.X, output=output, most=most, ax=axes)
    order = np.argsort(-display.sizes)
    found = [f"{display.names[k]} ({number(float(display.sizes[k]), 3)})" for k in order]
    caption = (
        "Average effect of setting one input in some rows of the data, with 50 and 95 % bands, all drawn to one scale. "
        f"{subject.targets[output]} moves most with {names(found, 4)}: in brackets, how far."
    )
    total = len(parts(subject.estimator))
    if total > most:
        caption += f" Drawn are the {most} largest of {total}."
    labels = [f"Effect of {name}" for name in display.names]
    return figure(pictures(display.plot, f"components-{output}", labels, SMALL), caption, "small")


def calibration(subject: Subject) -> Section:
    """Whether intervals hold as many targets as they claim, or classes come about as often."""
    if subject.y is None:
        return Section("calibration", "Calibration", _missing("Whether intervals hold what they claim", "`X` and `y`"))
    body = _each(subject, _reliability if subject.classifier else _coverage)
    warned = paragraph(caution(subject), kind="note") if caution(subject) else ""
    return Section("calibration", "Calibration", body + warned)


def _coverage(subject: Subject, output: int) -> str:
    found, score = subject.judged[output], subject.scores[output]

    def draw(axes: list[Axes]) -> None:
        CalibrationDisplay.from_ranks(found.rank, ax=axes)

    outer, inner = (VERDICTS[by_chance(score.inside[c], score.rows, c)] for c in (0.95, 0.5))
    verdict = "" if outer == inner else f", {outer}"
    caption = (
        f"95 % intervals held {percent(score.inside[0.95])} of {count(score.rows, 'row')}{verdict}, and 50 % intervals "
        f"{percent(score.inside[0.5])}, {inner}. Left, the same for all coverages; right, the ranks of the targets "
        "within their predictions, which lie flat if these are right. Grey is what chance would do."
    )
    labels = ["Empirical against nominal coverage", "Histogram of the ranks of targets"]
    return figure(pictures(draw, f"calibration-{output}", labels), caption)


def _reliability(subject: Subject, output: int) -> str:
    hit, probability = labelled(subject.estimator, subject.X, subject.y, output)
    name = subject.classes[output]

    def draw(axes: list[Axes]) -> None:
        CalibrationDisplay.from_probabilities(hit, probability, name=name, ax=axes)

    caption = (
        f"{name} was given a probability of {percent(float(probability.mean()))} on average and came about in "
        f"{percent(float(hit.mean()))} of {count(subject.rows, 'row')}. Left, the same for tenths of the rows, from "
        "the lowest to the highest probability; grey is what chance would do. Right, how the probabilities are spread."
    )
    labels = [f"Frequency of {name} against its probability", "Histogram of the probabilities"]
    return figure(pictures(draw, f"calibration-{output}", labels), caption)


def residuals(subject: Subject) -> Section | None:
    """What is left, in units of what the model thought it to be."""
    if subject.classifier:
        return None
    if not subject.judged:
        return Section("residuals", "Residuals", _missing("What predictions leave unexplained", "`X` and `y`"))
    return Section("residuals", "Residuals", _each(subject, _rest))


def _rest(subject: Subject, output: int) -> str:
    found = subject.judged[output]
    display = ResidualsDisplay(found.y, found.mean, found.std, name=subject.targets[output])
    sizes = np.abs(display.residuals)
    beyond, largest = float(np.mean(sizes > 1.96)), float(sizes.max())
    caption = (
        f"Residuals in units of their predicted deviation. {percent(beyond)} of {count(len(found.y), 'row')} lie "
        f"beyond the dashed lines, where 5 % would be expected; the largest is {number(largest, 3)} deviations. "
        "A bend or a funnel in the cloud would say that the model misses something."
    )
    drawn = wide(display.plot, f"residuals-{output}", "Standardised residuals against predictions")
    return figure(drawn, caption)


def _missing(what: str, needed: str) -> str:
    return paragraph(f"{what}: left out, as it needs {needed}.", HOW, kind="note")

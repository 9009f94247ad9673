"""Sections on what was given, what was fitted, how it was trained and what came of it: they need no data."""

from typing import Any

import numpy as np

from .._version import __version__
from ..plots import LearningCurveDisplay
from ..plots._source import parts, shown
from ._facts import Subject, learned
from ._html import Section, figure, listing, paragraph, table
from ._reasons import choices, model_words
from ._svg import nowhere, wide
from ._words import count, duration, moment, names, number, percent

KINDS = {"number": "number", "time": "time", "duration": "duration (s)", "category": "category"}


def data(subject: Subject) -> Section:
    """Columns, kinds, ranges, rows and what is missing."""
    estimator = subject.estimator
    record = estimator.record_
    sentences = [
        f"Trained on {count(record['rows'], 'row')} with {count(len(estimator.table_.columns), 'input column')}."
    ]
    if subject.given:
        some = (
            "" if subject.given == subject.rows else f" ({number(subject.rows)} of them, drawn at random, are judged)"
        )
        sentences.append(f"This report looks at {count(subject.given, 'row')}{some}.")
    rows = [_column(subject, column) for column in estimator.table_.columns]
    head = ["input", "kind", "range in training"]
    if subject.x is not None:
        head += ["range here", "median or most frequent"]
    body = paragraph(*sentences) + table(head, rows)
    if subject.y is not None:
        body += _targets(subject)
    return Section("data", "Data", body)


def _column(subject: Subject, column: Any) -> list[str]:
    if column.width == 0:
        return [column.name, KINDS[column.kind], "constant"] + ["", ""] * (subject.x is not None)
    ends = shown(column, np.array([[0.0], [1.0]])) if column.kind != "category" else ()
    cells = [column.name, KINDS[column.kind], _range(*ends) if len(ends) else names(column.levels, 5)]
    if subject.x is None:
        return cells
    where = next(place for other, place in parts(subject.estimator) if other is column)
    scaled = subject.x[:, where]
    if column.kind == "category":
        frequency = scaled.mean(axis=0)
        most = column.levels[int(np.argmax(frequency))]
        return [*cells, count(int(np.sum(frequency > 0)), "level"), f"{most} ({percent(frequency.max(), 0)})"]
    ends = np.stack([scaled.min(axis=0), scaled.max(axis=0), np.median(scaled, axis=0)])
    low, high, middle = shown(column, ends)
    return [*cells, _range(low, high), moment(middle, high - low)]


def _range(low: Any, high: Any) -> str:
    return f"{moment(low, high - low)} to {moment(high, high - low)}"


def _targets(subject: Subject) -> str:
    if subject.classifier:
        classes, counts = np.unique(np.asarray(subject.y), return_counts=True)
        rows = [[str(one), number(int(k)), percent(k / subject.rows)] for one, k in zip(classes, counts, strict=True)]
        return table(["class", "rows", "share"], rows, right=(1, 2))
    rows = [
        [
            name,
            _range(found.y.min(), found.y.max()),
            number(float(found.y.mean())),
            number(float(found.y.std())),
            number(subject.rows - len(found.y)),
        ]
        for name, found in zip(subject.targets, subject.judged, strict=True)
    ]
    return table(["target", "range here", "mean", "standard deviation", "missing"], rows, right=(2, 3, 4))


def fitted(subject: Subject) -> Section:
    """The model in words, and each choice with its reason."""
    body = paragraph(*model_words(subject.estimator))
    body += table(["choice", "value", "why"], choices(subject.estimator))
    return Section("model", "What was fitted, and why", body)


def training(subject: Subject) -> Section:
    """The learning curve, and whether it has become flat."""
    history = subject.estimator.history_
    found = learned(history)
    sentences = [convergence(subject)]
    if history.ended_early:
        sentences.append(f"Training ended early: {history.stopped}.")
    if history.retries:
        sentences.append(f"It went back and on with smaller steps {count(history.retries, 'time')}.")
    display = LearningCurveDisplay.from_estimator(subject.estimator, ax=nowhere())
    drawn = wide(display.plot, "learning", "The objective over the steps of training")
    caption = (
        f"The objective that training maximises, over {count(found.steps, 'step')}; its last tenth lies at "
        f"{number(found.last)} nats for each row."
    )
    return Section("training", "Training", paragraph(*sentences) + figure(drawn, caption))


def convergence(subject: Subject) -> str:
    """One sentence on whether more steps would help."""
    found = learned(subject.estimator.history_)
    half, tenth = (number(gain, 2) if abs(gain) >= 1e-4 else "less than 0.0001" for gain in (found.half, found.tenth))
    change = f"over the second half of {count(found.steps, 'step')} the objective changed by {half} nats for each row"
    change += f", over the last tenth by {tenth}"
    if found.settled is None:
        return f"It is too early to tell whether training has settled: {change}."
    if found.settled:
        return f"Training has settled: {change}."
    return f"Training was still going on: {change}. More steps would probably help (`steps={2 * found.steps}`)."


def parameters(subject: Subject) -> Section:
    """Physical parameters with their units."""
    rows = [row for row in subject.estimator.summary().rows if row.section == "parameters"]
    lines = [[row.name, _value(row.value, row.unit), row.unit] for row in rows]
    lead = "Learned from the data, in your units. Those of targets are in the units of the target."
    return Section("parameters", "Parameters", paragraph(lead) + table(["parameter", "value", "unit"], lines))


def _value(value: Any, unit: str) -> str:
    """A value, where it is a time also in the unit that suits it."""
    if not isinstance(value, float) or value <= 0:
        return number(value)
    if unit == "seconds" and value >= 120:
        return f"{number(value)} ({duration(value)})"
    if unit == "per second" and value <= 1 / 120:
        return f"{number(value)} (once in {duration(1 / value)})"
    return number(value)


def record(subject: Subject, said: list[str]) -> Section:
    """Timings, versions and warnings."""
    estimator = subject.estimator
    facts, history = estimator.record_, estimator.history_
    rate = history.steps[-1] / history.seconds[-1] if history.seconds and history.seconds[-1] > 0 else None
    rows = [["time of training", duration(facts["seconds"])], ["device", str(facts["device"])]]
    if rate is not None:
        rows.append(["steps in a second", number(float(rate), 3)])
    rows += [[f"version of {name}", str(version)] for name, version in facts["versions"].items()]
    rows.append(["version of latentforce, for this report", __version__])
    warned = list(dict.fromkeys([*map(str, facts["warnings"]), *said]))
    body = table([], rows) + (listing(warned) if warned else paragraph("No warnings were given."))
    return Section("record", "Timings, versions and warnings", body)

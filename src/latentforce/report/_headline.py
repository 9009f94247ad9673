"""The top of the page: the key result in a sentence and in a few numbers."""

import numpy as np

from ..plots._source import label, parts
from ._about import convergence
from ._facts import Subject, caution
from ._html import paragraph, text, tiles
from ._judgement import accuracy
from ._words import count, duration, names, number, percent

Fact = tuple[str, str, str]  # what, how much, and a remark


def title(subject: Subject) -> str:
    """What is predicted from what."""
    columns = [label(column) for column, _ in parts(subject.estimator)] or ["constant inputs"]
    inputs = names(columns) if len(columns) <= 3 else f"{len(columns)} columns"
    what = f"Classes {names(subject.classes, 4)}" if subject.classifier else names(subject.targets)
    return f"{what} {'over' if len(columns) == 1 else 'from'} {inputs}"


def top(subject: Subject) -> str:
    """The headline as HTML."""
    kicker = f'<p class="kicker">latentforce report · {text(subject.estimator.model)}</p>'
    if subject.y is None:
        lede, facts = _untested(subject)
    else:
        lede, facts = _classes(subject) if subject.classifier else _numbers(subject)
    return f"{kicker}\n<h1>{text(title(subject))}</h1>\n{paragraph(lede, kind='lede')}\n{tiles(facts)}"


def _untested(subject: Subject) -> tuple[str, list[Fact]]:
    record = subject.estimator.record_
    lede = f"Trained on {count(record['rows'], 'row')} in {duration(record['seconds'])}. {convergence(subject)}"
    facts = [
        ("trained on", number(record["rows"]), "rows"),
        ("inputs", number(len(subject.estimator.table_.columns)), "columns"),
        ("steps", number(subject.estimator.history_.steps[-1]), f"in {duration(record['seconds'])}"),
    ]
    return lede, facts


def _numbers(subject: Subject) -> tuple[str, list[Fact]]:
    scores, rows = subject.scores, count(subject.rows, "row")
    best, worst = (pick(scores, key=lambda score: score.explained) for pick in (max, min))
    held = [score.inside[0.95] for score in scores]
    if len(scores) == 1:
        lede = (
            f"On the {rows} given, predictions of {best.name} explain {percent(best.explained)} of its variance, and "
            f"the 95 % intervals held {percent(held[0])} of the values."
        )
        first = ("typical error", number(best.rmse, 3), f"root mean square, in units of {best.name}")
    else:
        lede = (
            f"On the {rows} given, predictions explain between {percent(worst.explained)} ({worst.name}) and "
            f"{percent(best.explained)} ({best.name}) of the variance, and the 95 % intervals held between "
            f"{percent(min(held))} and {percent(max(held))} of the values."
        )
        first = ("targets", number(len(scores)), names([score.name for score in scores]))
    explained = "of the values given" if len(scores) == 1 else "of the target that is predicted worst"
    log_score = number(subject.estimator.log_score(subject.X, subject.y), 3)
    facts = [
        first,
        ("variance explained", percent(worst.explained), explained),
        ("inside 95 % intervals", percent(float(np.mean(held))), f"of {rows}"),
        ("log score", log_score, "nats for each value; more is better"),
    ]
    return f"{lede} {caution(subject)}", facts


def _classes(subject: Subject) -> tuple[str, list[Fact]]:
    right, base = accuracy(subject)
    rows = count(subject.rows, "row")
    lede = f"Of the {rows} given it names the right class for {percent(right)}"
    lede += f"; always naming the most frequent one would be right for {percent(base)}."
    facts = [
        ("right", percent(right), f"of {rows}"),
        ("most frequent class", percent(base), "what one would get without a model"),
        ("classes", number(len(subject.classes)), names(subject.classes)),
        ("log score", number(subject.estimator.log_score(subject.X, subject.y), 3), "nats for each row; 0 is perfect"),
    ]
    return f"{lede} {caution(subject)}", facts

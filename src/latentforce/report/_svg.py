"""Pictures as SVG inside the page: the same bytes for the same picture, and no two elements of one name."""

import html
import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

STYLE: dict[str, Any] = {
    "svg.fonttype": "none",  # letters stay letters, in the page's own font, which knows more scripts than matplotlib's
    "font.size": 9.0,
    "axes.edgecolor": "#888888",
    "axes.labelcolor": "#333333",
    "axes.linewidth": 0.7,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "savefig.transparent": True,
}
WIDE, NARROW, HALF, SMALL = (8.8, 3.2), (4.2, 3.2), (4.4, 3.4), (3.2, 2.5)  # inches: their text is to be read as it is


def pictures(draw: Callable[[list[Axes]], Any], name: str, labels: Sequence[str], size: tuple = HALF) -> list[str]:
    """As many pictures as there are `labels`, which say what is on each; `draw` is given an axes for each."""
    drawn = zip(_drawn(draw, len(labels), name, size), labels, strict=True)
    return [_svg(one, label, f"{name}-{number}") for number, (one, label) in enumerate(drawn)]


def wide(draw: Callable[[Axes], Any], name: str, label: str) -> list[str]:
    """One picture in two shapes, for wide and for narrow pages; the style sheet shows one of them."""
    shapes = {"wide": WIDE, "narrow": NARROW}
    drawn = {kind: _drawn(lambda axes: draw(axes[0]), 1, f"{name}-{kind}", size) for kind, size in shapes.items()}
    return [_svg(figures[0], label, f"{name}-{kind}", kind) for kind, figures in drawn.items()]


def nowhere() -> Axes:
    """Axes for a display that is to be drawn later: it is made, with all that it computes, once."""
    return Figure().subplots()


def _drawn(draw: Callable[[list[Axes]], Any], num: int, name: str, size: tuple[float, float]) -> list[str]:
    """The figures as matplotlib writes them; the user's own settings of matplotlib do not matter."""
    with matplotlib.style.context(["default", STYLE | {"svg.hashsalt": name}]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # the browser has it
        figures = [Figure(figsize=size, layout="constrained") for _ in range(num)]
        draw([figure.subplots() for figure in figures])
        return [_written(figure) for figure in figures]


def _written(figure: Figure) -> str:
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing, dpi=160)
    return buffer.getvalue()


def _svg(written: str, label: str, name: str, kind: str = "") -> str:
    """The element itself: named, described, as large as the page wants it, with identifiers of its own."""
    body = written[written.index("<svg") :]
    body = re.sub(r"<style.*?</style>|<metadata.*?</metadata>|<!--.*?-->", "", body, flags=re.DOTALL)
    own = rf"\g<1>{name}-"
    body = re.sub(r"<[^>]*>", lambda tag: re.sub(r'(\bid="|url\(#|href="#)', own, tag[0]), body)
    (box,) = re.findall(r'viewBox="[^"]*"', body)
    namespace = 'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns="http://www.w3.org/2000/svg"'
    words = html.escape(label, quote=True)
    opening = f'<svg class="{kind}" role="img" aria-label="{words}" {box} {namespace}>'
    return re.sub(r"<svg[^>]*>", lambda _: opening, body, count=1).strip()

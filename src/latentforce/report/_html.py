"""HTML as plain strings. All words, the user's too, pass `text`, which alone decides what is markup."""

import html
import re
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple


class Section(NamedTuple):
    """A part of the page: an identifier, a title and its HTML."""

    name: str
    title: str
    body: str


def text(value: Any) -> str:
    """Plain words as HTML: everything is escaped, what stands between backticks is code, and 95 % is not broken."""
    escaped = re.sub(r"(\d) %", "\\1\u202f%", html.escape(str(value), quote=True))
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)


def paragraph(*sentences: str, kind: str = "") -> str:
    """Sentences that belong together."""
    return f"<p{_class(kind)}>{text(' '.join(filter(None, sentences)))}</p>"


def heading(words: str) -> str:
    """A title within a section."""
    return f"<h3>{text(words)}</h3>"


def listing(items: Sequence[str]) -> str:
    """A list with points."""
    return f"<ul>{''.join(f'<li>{text(item)}</li>' for item in items)}</ul>"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[int] = ()) -> str:
    """A table that scrolls by itself where it is wider than the page; columns `right` are set to the right."""

    def line(cells: Sequence[Any], tag: str) -> str:
        return "".join(f"<{tag}{_class('num' if k in right else '')}>{text(c)}</{tag}>" for k, c in enumerate(cells))

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    top = f"<thead><tr>{line(head, 'th')}</tr></thead>" if head else ""
    return f'<div class="scroll" tabindex="0"><table>{top}<tbody>{body}</tbody></table></div>'


def figure(pictures: Sequence[str], caption: str, kind: str = "") -> str:
    """Pictures (inline SVG) side by side, as many as fit, and what they show in words."""
    grid = f'<div class="{f"pictures {kind}".strip()}">{"".join(pictures)}</div>'
    return f"<figure>{grid}<figcaption>{text(caption)}</figcaption></figure>"


def tiles(facts: Sequence[tuple[str, str, str]]) -> str:
    """A few large numbers: what each is, the number, and a remark."""
    parts = (
        f"<div><dt>{text(name)}</dt><dd>{text(number)}<small>{text(remark)}</small></dd></div>"
        for name, number, remark in facts
    )
    return f'<dl class="tiles">{"".join(parts)}</dl>'


def page(title: str, top: str, sections: Sequence[Section], bottom: str) -> str:
    """The whole document."""
    links = "".join(f'<li><a href="#{part.name}">{text(part.title)}</a></li>' for part in sections)
    bodies = "\n".join(
        f'<section id="{part.name}"><h2>{text(part.title)}</h2>\n{part.body}</section>' for part in sections
    )
    folder = files("latentforce.report")
    template = Template((folder / "page.html").read_text("utf-8"))
    style = (folder / "style.css").read_text("utf-8")
    parts = {"title": html.escape(title), "style": style, "top": top, "links": links}
    return template.substitute(parts, sections=bodies, bottom=bottom)


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""

"""Formulas as MathML, made while the site is built: browsers show it without scripts or a network, in our font."""

import html
import re
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Replace what `pymdownx.arithmatex` marked."""

    def formula(display: str, found: re.Match) -> str:
        latex = html.unescape(found[1]).strip()
        try:
            return convert(latex, display=display)
        except Exception as error:
            raise PluginError(f"{page.file.src_uri}: the formula {latex!r} is not understood: {error!r}") from error

    content = INLINE.sub(lambda found: formula("inline", found), content)
    return DISPLAY.sub(lambda found: f'<div class="formula">{formula("block", found)}</div>', content)

"""Links from pages to the lines of the source: `[text](src:latentforce/dynamics/_system.py#linear_system)`.

The symbol (`function`, `Class`, `Class.method`) is looked up when the site is built, so that a link cannot point at a
line that has moved; one that is gone fails the build. The files that are linked to become pages of the site, which can
thus be read without a network, in the version that it describes.
"""

import ast
import functools
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

SOURCE = Path(__file__).parents[2] / "src"
LINK = re.compile(r"\(src:(?P<path>[\w/]+\.py)#(?P<symbol>[\w.]+)\)")
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
body {{ margin: 0; padding: 1rem 1.5rem 60vh; font: 0.95rem/1.5 system-ui, sans-serif; }}
pre {{ font: 0.85rem/1.5 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; overflow-x: auto; }}
span[id]:target {{ background: #ffe08a66; }}
span[id] {{ scroll-margin-top: 20vh; }}
{light}
@media (prefers-color-scheme: dark) {{ body {{ background: #0d1117; color: #e6edf3; }} {dark} }}
</style>
</head>
<body>
<h1>{title}</h1>
{code}
</body>
</html>
"""


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each file that some page links to."""
    texts = [Path(page.abs_src_path).read_text() for page in files.documentation_pages() if page.abs_src_path]
    for path in sorted({found["path"] for text in texts for found in LINK.finditer(text)}):
        files.append(File.generated(config, _uri(path), content=_listing(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point each link at its line."""
    here = posixpath.dirname(page.file.src_uri)

    def resolved(found: re.Match) -> str:
        path, symbol = found["path"], found["symbol"]
        line = lines(path).get(symbol)
        if line is None:
            raise PluginError(f"{page.file.src_uri} links to `{symbol}` in src/{path}, which is not there.")
        return f'({posixpath.relpath(_uri(path), here or ".")}#L-{line} "{path}, line {line}")'

    return LINK.sub(resolved, markdown)


@functools.cache
def lines(path: str) -> dict[str, int]:
    """The line of each function, class and method of a file, by name."""
    file = SOURCE / path
    if not file.exists():
        raise PluginError(f"there is a link to src/{path}, which is not there.")
    return _named(ast.parse(file.read_text()), "")


def _named(node: ast.AST, prefix: str) -> dict[str, int]:
    found = {}
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            found[prefix + child.name] = child.lineno
            found |= _named(child, f"{prefix}{child.name}.")
    return found


def _uri(path: str) -> str:
    return f"source/{path.removesuffix('.py')}.html"


def _listing(path: str) -> str:
    """The file as a page by itself, an anchor at each line."""
    light = HtmlFormatter(linenos="inline", linespans="L")
    code = highlight((SOURCE / path).read_text(), PythonLexer(), light)
    dark = HtmlFormatter(style="github-dark").get_style_defs(".highlight")
    return PAGE.format(title=path, light=light.get_style_defs(".highlight"), dark=dark, code=code)

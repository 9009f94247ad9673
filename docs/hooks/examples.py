"""Runs the Python blocks of every page once, in order, in one process for each page, and shows what they make.

What a block prints and draws follows it; HTML files that it writes are in `files/` beside the page. A block that fails,
or warns, fails the build. Words after the language say more: `caption="..."` describes the block's figures (they must
have one), `hide` shows only what comes out, `notest` is for code that cannot run here. Results are kept by the content
of page and package, so that a second build is quick.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".cache" / "docs"
WORKER = Path(__file__).with_name("worker.py")
FENCE = re.compile(r"^```python(?P<words>[^\n]*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
CAPTION = re.compile(r'caption="([^"]*)"')
MINUTES = 10


class Block(NamedTuple):
    """A piece of Python on a page."""

    code: str
    caption: str
    hidden: bool
    runs: bool


_outcomes: dict[str, Path] = {}  # by page: the folder of what its blocks made


def blocks(markdown: str) -> list[Block]:
    """All Python blocks of a page, in order."""
    return [_block(found) for found in FENCE.finditer(markdown)]


def on_files(files: Files, config: Any) -> Files:
    """Run all pages, as many at a time as there are cores, and add their figures to the site's files."""
    pages = {page.src_uri: Path(page.abs_src_path) for page in files.documentation_pages() if page.abs_src_path}
    found = {uri: blocks(path.read_text()) for uri, path in pages.items()}
    wanted = {uri: page for uri, page in found.items() if any(block.runs for block in page)}
    package = _fingerprint()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        folders = pool.map(lambda uri: _outcome(uri, wanted[uri], package), wanted)
        _outcomes.update(zip(wanted, folders, strict=True))
    for uri, folder in _outcomes.items():
        made = {_figure_uri(uri, figure.stem): figure for figure in sorted(folder.glob("*.svg"))}
        made |= {f"{Path(uri).parent}/files/{page.name}": page for page in sorted(folder.glob("*.html"))}
        for place, path in made.items():
            files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Each block followed by what it made."""
    uri = page.file.src_uri
    made = json.loads((_outcomes[uri] / "outcome.json").read_text()) if uri in _outcomes else []
    numbers = iter(range(len(made)))

    def replaced(found: re.Match) -> str:
        block = _block(found)
        parts = [] if block.hidden else [f"```python\n{block.code}```"]
        if block.runs:
            outcome = made[next(numbers)]
            if outcome["printed"]:
                parts.append(f"```{{ .text .output }}\n{outcome['printed'].rstrip()}\n```")
            parts += [_figure(uri, stem, block.caption) for stem in outcome["figures"]]
        return "\n\n".join(parts)

    return FENCE.sub(replaced, markdown)


def _block(found: re.Match) -> Block:
    words = found["words"]
    caption = CAPTION.search(words)
    rest = CAPTION.sub("", words).split()
    return Block(found["code"], caption[1] if caption else "", "hide" in rest, "notest" not in rest)


def _outcome(uri: str, page: list[Block], package: str) -> Path:
    """The folder of what a page's blocks make: as it was kept, or made now."""
    run = [block for block in page if block.runs]
    content = json.dumps([package, run])
    folder = KEPT / f"{Path(uri).stem}-{hashlib.sha256(content.encode()).hexdigest()[:16]}"
    if (folder / "outcome.json").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)  # what an attempt that failed has left
    folder.mkdir(parents=True)
    job = {"page": uri, "folder": str(folder), "blocks": [{"code": b.code, "caption": b.caption} for b in run]}
    done = subprocess.run(
        [sys.executable, str(WORKER)],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        env=_environment(),
        timeout=60 * MINUTES,
    )
    if done.returncode:
        raise PluginError(f"an example of {uri} failed:\n{done.stderr[-4000:]}")
    return folder


@cache
def _environment() -> dict[str, str]:
    """Compiling is most of the work: what was compiled is kept, and is compiled the quick way where jaxlib knows it."""
    plain = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(KEPT / "compiled"), "MPLBACKEND": "agg"}
    plain["OPENBLAS_NUM_THREADS"] = "1"  # pages share the cores: threads that wait for each other cost most
    quick = plain | {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_use_fusion_emitters=false".strip()}
    probe = [sys.executable, "-c", "import jax; jax.devices()"]
    return quick if subprocess.run(probe, env=quick, capture_output=True).returncode == 0 else plain


def _fingerprint() -> str:
    """Of everything that an example's result depends on but its own text."""
    sources = [*sorted((ROOT / "src").rglob("*.py")), WORKER]
    contents = [version("jax").encode(), *(path.read_bytes() for path in sources)]
    return hashlib.sha256(b"".join(contents)).hexdigest()


def _figure_uri(uri: str, stem: str) -> str:
    page = Path(uri)
    return (page.parent / "figures" / f"{page.stem}-{stem}.svg").as_posix()


def _figure(uri: str, stem: str, caption: str) -> str:
    link = Path(_figure_uri(uri, stem)).relative_to(Path(uri).parent).as_posix()
    return f'<figure markdown="span">\n![{caption}]({link})\n<figcaption>{caption}</figcaption>\n</figure>'

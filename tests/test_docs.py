"""The site's pages as far as they can be judged without building it: `mkdocs build` runs their examples."""

import importlib.util
import re
from pathlib import Path

import pytest

from latentforce.commands._arguments import COMMANDS, parser

ROOT = Path(__file__).parent.parent
PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "results")  # those are parts
FENCE = re.compile(r"^```python[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def hook(name):
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / "hooks" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_is_python(page):
    for number, code in enumerate(FENCE.findall(page.read_text()), 1):
        compile(code, f"{page}, block {number}", "exec")


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    missing = [page for page in PAGES if str(page.relative_to(ROOT / "docs")) not in navigation]
    assert not missing


def test_the_reference_is_complete(tmp_path):
    reference = hook("reference")
    assert reference.faults(ROOT / "docs" / "reference") == []
    (tmp_path / "page.md").write_text("::: latentforce.fit\n\n::: latentforce.fit\n\n::: latentforce.clairvoyance\n")
    faults = "\n".join(reference.faults(tmp_path))
    assert "latentforce.predict is in no page" in faults
    assert "latentforce.fit is there 2 times" in faults
    assert "latentforce.clairvoyance is in the reference but not public" in faults


def test_the_command_line_page_has_every_command():
    text = hook("commands").described(parser())
    for name in COMMANDS:
        assert f"## latentforce {name} " in text
    assert "| `--target` `COLUMN` | what to predict; may be given several times |" in text

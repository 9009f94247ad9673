"""The report: complete in itself, safe with any names, and right in a real browser, on a phone and on paper."""

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from importlib.resources import files

import jax
import matplotlib
import numpy as np
import pandas as pd
import pytest
from PIL import Image

import latentforce as lf
from latentforce.report import _facts, _report, report, write_report
from latentforce.report._facts import by_chance, learned
from latentforce.report._html import text
from latentforce.report._words import names

GENERATOR = np.random.default_rng(0)
HOSTILE = "<script>alert('$x$')</script>"
TABLE = pd.DataFrame(
    {
        HOSTILE: GENERATOR.random(60),
        'a "quoted" & very long name of a column that does not fit anywhere': 1e6 * GENERATOR.random(60),
        "site": np.where(np.arange(60) % 3 == 0, "<b>north</b>", "south"),
        "when": pd.date_range("2024-01-01", periods=60, freq="D"),
        '風速 id="x"': GENERATOR.random(60),
        "constant": 1.0,
    }
)
TARGETS = pd.DataFrame({"</title>": TABLE[HOSTILE] ** 2, "$\\frac": 100 * GENERATOR.standard_normal(60)})
TARGETS.iloc[::4, 1] = np.nan
DAYS = TABLE[["when"]]
LOAD = pd.Series(np.sin(np.arange(60) / 9) + 0.1 * GENERATOR.standard_normal(60), name="load")
QUICK = {"num_frequencies": 3, "steps": 25, "batch_size": 25, "precision": "float64"}  # batches: little to compile
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(autouse=True)
def as_users_have_it():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


@pytest.fixture(scope="module")
def deep():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        return lf.LatentForceRegressor("dlfm-rff", **QUICK).fit(DAYS, LOAD)


@pytest.fixture(scope="module")
def table():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        return lf.LatentForceRegressor("lfm-rff", directions=5, **QUICK).fit(TABLE, TARGETS)


@pytest.fixture(scope="module")
def classifier():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        return lf.LatentForceClassifier("ssgp", **QUICK).fit(DAYS, np.where(LOAD > 0, "up", "down"))


@pytest.fixture(scope="module")
def pages(deep, table, classifier):
    """Everything that can be on a page, made once."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        return {
            "series": report(deep, DAYS, LOAD),
            "bare": report(deep),
            "table": report(table, TABLE, TARGETS),
            "classes": report(classifier, DAYS, np.where(LOAD > 0, "up", "down")),
        }


class Outline(HTMLParser):
    """What a page is made of; complains where elements are not closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.ids, self.links, self.headings, self.words = [], [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [v for k, v in attributes if k in ("href", "src", "xlink:href")]
        self.open += [tag] if tag not in ("meta", "br", "img", "link") else []

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "svg", "title"):
            self.words.append(data)
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


@pytest.mark.parametrize("name", ["series", "bare", "table", "classes"])
def test_pages_are_whole_and_need_nothing_else(pages, name):
    page = pages[name]
    outline = Outline(page)
    assert page.startswith("<!DOCTYPE html>") and 'name="viewport"' in page
    assert len(outline.ids) == len(set(outline.ids))
    inside = {f"#{one}" for one in outline.ids}
    assert all(link in inside or link.startswith("data:image/png") for link in outline.links)
    assert {f"#{one}" for one in re.findall(r"url\(#([^)]*)\)", page)} <= inside
    assert set(re.findall(r"https?://[^\"'\s)]*", page)) <= {
        "http://www.w3.org/1999/xlink",
        "http://www.w3.org/2000/svg",
    }
    assert "<script" not in page and "@import" not in page and "<metadata" not in page and "nan" not in outline.words


def sections(page):
    return [title for title in Outline(page).headings if title != "Contents"]


def test_sections(pages):
    common = ["Data", "What was fitted, and why", "Training", "Fit"]
    ends = ["Parameters", "Timings, versions and warnings"]
    judged = ["Calibration", "Residuals"]
    assert sections(pages["series"]) == [*common, "Hidden layers", "Hidden force", *judged, *ends]
    assert sections(pages["bare"]) == sections(pages["series"])
    assert sections(pages["table"]) == [*common, "Effects of the inputs", "Hidden force", *judged, *ends]
    assert sections(pages["classes"]) == [*common, "Calibration", *ends]


def test_words_and_numbers(pages, deep, table):
    page = " ".join(Outline(pages["series"]).words)
    low, high = deep.predict_interval(DAYS, coverage=0.95).T
    held = 100 * np.mean((low < LOAD) & (high > LOAD))
    assert re.search(rf"95\u202f% intervals held {held:.1f}".rstrip("0").rstrip(".") + r"\u202f% of 60 rows", page)
    assert "load over when" in page and "2024-01-01 to 2024-02-29" in page
    assert "deep latent force model on random Fourier features. It has 2 layers" in page
    assert "If these are the rows that it was trained on" in page
    several = " ".join(Outline(pages["table"]).words)
    assert "constant" in several and "2 levels" in several and "You asked for it." in several
    assert f"{np.isnan(TARGETS.iloc[:, 1]).sum()}" in several
    bare = " ".join(Outline(pages["bare"]).words)
    assert "left out, as it needs" in bare and "report(estimator, X, y)" in bare and "held" not in bare
    versions = " ".join(f"version of {name} {version}" for name, version in deep.record_["versions"].items())
    assert versions in re.sub(r"\s+", " ", bare) and "No warnings were given." in bare


def test_names_are_words_never_markup(pages):
    page = pages["table"]
    words = "".join(Outline(page).words)
    assert HOSTILE in words and "<b>north</b>" in words and "</title>" in words
    assert words.count('風速 id="x"') > 2  # in the table, in captions and on the axis
    assert page.count("<title>") == 1 and text("a < `b`") == "a &lt; <code>b</code>"


def test_the_same_page_each_time(pages, deep, tmp_path):
    deep.save(tmp_path / "model")
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 30, "lines.linewidth": 9}):
        assert report(lf.load(tmp_path / "model")) == pages["bare"]


def test_files(deep, tmp_path, monkeypatch):
    monkeypatch.setattr(_report, "report", lambda *_: "first")
    path = tmp_path / "report.html"
    write_report(deep, path)
    with pytest.raises(FileExistsError, match=r"report.html is there already; give `force=True` to write over it"):
        write_report(deep, path)
    monkeypatch.setattr(_report, "report", lambda *_: "second")
    write_report(deep, path, force=True)
    assert path.read_text() == "second"
    monkeypatch.setattr(_report, "report", lambda *_: pytest.fail("made although it cannot be written"))
    with pytest.raises(FileNotFoundError, match="`path` must lie in a folder that exists"):
        write_report(deep, tmp_path / "missing" / "report.html")
    assert (files("latentforce.report") / "style.css").is_file()


def test_what_is_given(deep, monkeypatch):
    with pytest.raises(ValueError, match="`X` must be given where `y` is"):
        report(deep, y=LOAD)
    with pytest.raises(ValueError, match=r"`y` must have as many rows as `X` \(60\), got 59"):
        report(deep, DAYS, LOAD[1:])
    monkeypatch.setattr(_facts, "MOST_ROWS", 20)
    far = pd.DataFrame({"when": pd.date_range("2024-01-01", periods=60, freq="4D")})
    page = " ".join(Outline(report(deep, far, LOAD)).words)
    assert "60 rows (20 of them, drawn at random, are judged)" in page and "of 20 rows" in page
    assert "While this report was made: `X` has" in page.replace("  ", " ") or "outside the range" in page


def history(objective):
    from latentforce.inference._training import History

    return History(objective=list(objective), steps=[len(objective)])


def test_whether_training_has_settled():
    noise = 0.1 * GENERATOR.standard_normal(1000)
    assert learned(history(-np.exp(-np.arange(1000) / 50))).settled
    assert learned(history(noise - np.exp(-np.arange(1000) / 50))).settled
    assert learned(history(50 * noise)).settled is None
    assert learned(history(np.arange(1000) / 1000.0)).settled is False
    falling = learned(history(-np.exp(-np.sin(np.linspace(0, np.pi / 2, 1000)))))  # flat, as the rate falls to zero
    assert falling.settled is False and falling.tenth < 0.01 < falling.half
    assert learned(history(np.arange(12.0))).settled is None
    assert [by_chance(share, 1000, 0.95) for share in (0.9, 0.95, 0.99)] == ["fewer", "as", "more"]
    assert names(["a", "b"]) == "a and b"


MEASURE = """<script>addEventListener("load", () => {
  const shown = [...document.querySelectorAll("figure")].map(figure => [...figure.querySelectorAll("svg")]
    .filter(svg => getComputedStyle(svg).display !== "none").map(svg => {
      const box = svg.getBoundingClientRect();
      return [box.x + scrollX, box.y + scrollY, box.width, box.height];
    }));
  const height = Math.ceil(document.documentElement.getBoundingClientRect().height);
  const found = {shown, height, inner: innerWidth, scroll: document.documentElement.scrollWidth};
  parent.document.body.setAttribute(`data-found-${innerWidth}`, JSON.stringify(found));
});</script></body>"""
WIDTHS = (1280, 390)  # a desktop's and a phone's
NO_BROWSER = "there is no chromium, chromium-browser or google-chrome on the PATH"


def browse(folder, page, *options):
    """Run the browser on a page, with nothing of the user's own."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/profile"]
    (folder / "page.html").write_text(page, encoding="utf-8")
    command = [str(BROWSER), *flags, *options, f"file://{folder}/page.html"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout


def framed(page, height):
    """The page as devices show it, side by side in frames: windows of browsers have a least width."""
    style = f"border:0;height:{height}px"
    frames = (f'<iframe style="{style};width:{w}px" srcdoc="{html.escape(page, quote=True)}"></iframe>' for w in WIDTHS)
    return f'<!DOCTYPE html><meta charset="utf-8"><body style="margin:0;display:flex">{"".join(frames)}</body>'


def measured(folder, page):
    """Where the pictures are that one sees on each device."""
    wide = f"--window-size={sum(WIDTHS)},1000"
    dom = browse(folder, framed(page.replace("</body>", MEASURE), 800), "--dump-dom", wide)
    return [json.loads(html.unescape(re.search(rf'data-found-{width}="([^"]*)"', dom)[1])) for width in WIDTHS]


@pytest.mark.skipif(BROWSER is None, reason=NO_BROWSER)
@pytest.mark.parametrize("name", ["series", "table"])
def test_in_a_browser(pages, name, tmp_path):
    devices = measured(tmp_path, pages[name])
    shot, height = tmp_path / "shot.png", max(found["height"] for found in devices)
    options = f"--screenshot={shot}", f"--window-size={sum(WIDTHS)},{height}"
    browse(tmp_path, framed(pages[name], height), *options)
    whole = np.asarray(Image.open(shot).convert("L"), np.float64)
    assert whole.shape == (height, sum(WIDTHS))
    for found, width, picture in zip(devices, WIDTHS, np.split(whole, [WIDTHS[0]], axis=1), strict=True):
        assert found["inner"] == width and found["scroll"] <= width  # nothing sticks out to the right
        assert len(found["shown"]) == pages[name].count("<figure>") and all(found["shown"])
        for x, y, wide, high in (box for boxes in found["shown"] for box in boxes):
            assert wide >= 240 and high >= 150 and x >= 0 and x + wide <= width + 1
            part = picture[int(y) : int(y + high), int(x) : int(x + wide)]
            assert part.shape[0] >= 150 and 0.01 < np.mean(part < 250) < 0.9  # something is drawn, on white


@pytest.mark.skipif(BROWSER is None, reason=NO_BROWSER)
def test_on_paper(pages, tmp_path):
    browse(tmp_path, pages["table"], f"--print-to-pdf={tmp_path}/page.pdf", "--no-pdf-header-footer")
    document = (tmp_path / "page.pdf").read_bytes()
    assert document.startswith(b"%PDF") and 3 <= len(re.findall(rb"/Type\s*/Page\b", document)) <= 14

"""Sound as data for regression: where it comes from, how it is smoothed, and how it is split."""

import re
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..datasets import voice
from ..files._columns import DataFileError
from ..files._tables import read_table

RANGE = 3.0  # inputs lie in [0, 3]
TEST = 0.3  # share of the samples
Samples = tuple[np.ndarray, np.ndarray]  # times and values
SPHERE = b"NIST_1A\n"  # how the files of TIMIT begin, though they are called WAV


class Split(NamedTuple):
    """Times in [0, 3] and a signal of mean 0 and deviation 1 by its training part, for training and for testing."""

    train: Samples
    test: Samples


def describe(data: Path | None) -> dict[str, str]:
    """Which sound that is, by name and content and not by its place."""
    path = locate(data)
    if path is None:
        return {"sound": "voice"}
    return {"sound": path.name, "checksum": f"{zlib.crc32(path.read_bytes()):08x}"}


def locate(data: Path | None) -> Path | None:
    """The file itself, the first WAV of a folder or of the folder `speech` in it; None for the built-in voice."""
    if data is None or data.is_file():
        return data
    for folder in (data, data / "speech"):
        found = sorted(path for path in folder.glob("*") if path.suffix.lower() == ".wav")
        if found:
            return found[0]
    raise ValueError(f"`data` must be a WAV file, a folder of them or one with a folder `speech`, got {str(data)!r}.")


def signal(data: Path | None, samples: int, window: int, loudest: bool = False) -> np.ndarray:
    """The moving average of the first (or the loudest) so many samples of the sound."""
    path = locate(data)
    needed = samples + window - 1
    sound = voice(samples=max(needed, 10_000)) if path is None else read(path)
    if len(sound) < needed:
        raise ValueError(f"`data` must hold at least {needed} samples of sound, got {len(sound)} in {str(path)!r}.")
    smooth = np.convolve(sound, np.full(window, 1 / window), "valid")
    energy = np.concatenate([[0.0], np.cumsum(smooth**2)])
    start = int(np.argmax(energy[samples:] - energy[:-samples])) if loudest else 0
    return smooth[start : start + samples]


def read(path: Path) -> np.ndarray:
    """The first channel of a WAV file, or of the SPHERE files that TIMIT comes in, from -1 to 1."""
    with path.open("rb") as file:
        if file.read(len(SPHERE)) == SPHERE:
            return _sphere(path)
    return read_table(path).to_numpy()[:, 1]


def _sphere(path: Path) -> np.ndarray:
    """Samples of two bytes after a header of text, whose second line is its length."""
    content = path.read_bytes()
    text = content[len(SPHERE) : len(SPHERE) + 8].strip()
    size = int(text) if text.isdigit() else 0
    head: dict[str, Any] = dict(re.findall(r"^(\w+) -\w+ (\S+)", content[:size].decode("latin-1"), flags=re.MULTILINE))
    coding, width, channels = (head.get(key) for key in ("sample_coding", "sample_n_bytes", "channel_count"))
    if coding not in ("pcm", None) or width != "2" or channels is None or not channels.isdigit() or int(channels) < 1:
        wanted = "plain 16-bit samples (sample_coding pcm, sample_n_bytes 2) to be read"
        raise DataFileError(f"{path} must have {wanted}, got {coding}, {width} and {channels} channels.")
    order = ">" if head.get("sample_byte_format") == "10" else "<"
    frame = 2 * int(channels)
    end = size + (len(content) - size) // frame * frame
    return np.frombuffer(content[size:end], f"{order}i2").reshape(-1, int(channels))[:, 0] / 2.0**15


def split(values: np.ndarray, seed: int) -> Split:
    """Random samples for testing; the rest, in order, for training."""
    time = np.linspace(0.0, RANGE, len(values))
    order = np.random.default_rng(seed).permutation(len(values))
    cut = round((1 - TEST) * len(values))
    train, test = np.sort(order[:cut]), np.sort(order[cut:])
    values = (values - values[train].mean()) / values[train].std()
    return Split((time[train], values[train]), (time[test], values[test]))


def hold_out(data: Samples, share: float, seed: int) -> tuple[Samples, Samples]:
    """Random samples to judge a training by while it runs, and the rest, to train on."""
    times, values = data
    held = np.random.default_rng([seed, 1]).permutation(len(times)) < round(share * len(times))
    return (times[held], values[held]), (times[~held], values[~held])

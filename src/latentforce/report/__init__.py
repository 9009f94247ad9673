"""Reports: one self-contained page about a fitted estimator, for people."""

from ._report import report as report
from ._report import write_report as write_report

__all__ = ["report", "write_report"]

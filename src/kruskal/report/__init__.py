"""SHOW: how good a restoration is, pictures of it and a page that tells its story."""

from kruskal.report.comparison import default_peak
from kruskal.report.figures import write_dictionary_figures, write_figures
from kruskal.report.metrics import coverage, psnr, rrse, scores, ssim
from kruskal.report.page import write_report
from kruskal.report.result import Result

__all__ = [
    "Result",
    "coverage",
    "default_peak",
    "psnr",
    "rrse",
    "scores",
    "ssim",
    "write_dictionary_figures",
    "write_figures",
    "write_report",
]

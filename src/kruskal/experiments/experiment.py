"""What an experiment is: a list of cells, how one is run, and how the results are shown."""

from pathlib import Path
from typing import Any, Protocol

from kruskal.experiments.cells import Cell, Context
from kruskal.experiments.tables import Table

Results = dict[str, dict[str, Any]]
"""What `Experiment.run` returned, by the key of the cell."""


class Experiment(Protocol):
    """One table or figure of the paper; the module of each has one, named ``EXPERIMENT``.

    The four properties are plain attributes of a class.
    """

    @property
    def name(self) -> str:
        """As on the command line."""

    @property
    def title(self) -> str:
        """Heading of its output."""

    @property
    def what(self) -> str:
        """One line for ``--list``."""

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of the data sets that it reads (`kruskal.data.datasets`), checked before the first cell."""

    def cells(self, quick: bool, seeds: int | None) -> list[Cell]:
        """All cells in the order in which they are run.

        Parameters
        ----------
        quick : whether to leave most cells out; those that stay are the same cells with the same keys
        seeds : number of seeds, 1 to ``seeds`` (None: the experiment's own number)
        """

    def run(self, cell: Cell, context: Context) -> dict[str, Any]:
        """Run one cell; returns plain JSON values, without NaN or infinity.

        ``psnr``, ``rrse`` or ``rmse`` is told when the cell is done, if it is there.
        """

    def tables(self, results: Results) -> list[Table]:
        """The tables of whatever cells are there; gaps are shown as "-"."""

    def figure(self, results: Results, folder: Path) -> bytes | None:
        """A PNG file of whatever cells are there, or None; ``folder`` is that of `Context`."""

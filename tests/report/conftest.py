"""The figures of one example per order, drawn once."""

import pytest
from report_example import EXAMPLES, make_example

from kruskal.report import write_figures


@pytest.fixture(scope="session")
def figures_of_order(tmp_path_factory):
    """Return a function: order -> (example, paths of its figures)."""
    drawn = {}

    def draw(order):
        if order not in drawn:
            example = make_example(*EXAMPLES[order])
            folder = tmp_path_factory.mktemp("figures") / str(order)
            paths = write_figures(
                folder,
                example.result,
                observed_values=example.observed_values,
                observed=example.observed,
                reference=example.reference,
            )
            drawn[order] = example, paths
        return drawn[order]

    return draw

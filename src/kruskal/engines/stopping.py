"""When draws are kept, and when a run ends: after a number of sweeps, at convergence, or when time is up."""

from dataclasses import dataclass

import numpy as np

from kruskal.engines.chain import TRACED, Progressed

FLAT = 0.03
"""Burn-in may end when noise and codes per item change by less than this between two times five sweeps."""
SETTLED = 0.1
"""A run may end early when half as many draws again moved the estimate by less than this part of its std."""
_WINDOW = 5


@dataclass(frozen=True)
class Stopping:
    """The plan of a run.

    Parameters
    ----------
    sweeps : how many at most;  burn_in : how many at most are not kept;  warming : how many at least
    until_converged : end burn-in and run early when the trace and the estimate say so
    time_budget : seconds for the sweeps without compilation, or None; half of them at most for the burn-in,
        but for ``warming``, which is finished. What fits into a time depends on the machine, so such a run is
        not reproducible
    """

    sweeps: int
    burn_in: int
    until_converged: bool = False
    time_budget: float | None = None
    warming: int = 0

    def keeps(self, now: Progressed, seconds: float) -> bool:
        """Whether the next draw is kept; once one is, all are."""
        if now.moments.draws > 0 or now.done >= self.burn_in:
            return True
        if now.done < self.warming:
            return False
        if self.time_budget is not None and seconds >= 0.5 * self.time_budget:
            return True
        return self.until_converged and _flat(now.trace[max(self.warming, now.regrouped) :])

    def ended(self, now: Progressed, seconds: float) -> bool:
        """Whether the run is over: never before one draw is kept."""
        if now.done >= self.sweeps:
            return True
        if now.moments.draws == 0:
            return False
        if self.time_budget is not None and seconds * (1.0 + 1.0 / now.done) > self.time_budget:
            return True  # another sweep would not fit
        return self.converged(now)

    def converged(self, now: Progressed) -> bool:
        """Whether a run that may end at convergence has come to it."""
        return self.until_converged and now.shift <= SETTLED


def _flat(trace: np.ndarray) -> bool:
    """Whether noise and codes per item are level over the last ten sweeps."""
    if len(trace) < 2 * _WINDOW:
        return False
    columns = [TRACED.index(name) for name in ("noise_std", "active_per_item")]
    before = trace[-2 * _WINDOW : -_WINDOW, columns].mean(axis=0)
    after = trace[-_WINDOW:, columns].mean(axis=0)
    return bool((np.abs(after - before) <= FLAT * np.abs(after)).all())

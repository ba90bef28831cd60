r"""RMSprop with warm-up, cosine decay and an average of the parameters.

v <- rho v + (1 - rho) g^2,   theta <- theta - eta_t g / sqrt(v + eps),   average <- a average + (1 - a) theta
eta_t = eta min(1, t / warm-up) (1 + cos(pi (t - 1) / T)) / 2, so that the last step is no step of nothing
"""

import math
from typing import NamedTuple

import numpy as np


class Schedule(NamedTuple):
    """rate : eta;  warm_up : steps;  total : T;  decay : rho;  floor : eps;  averaging : a."""

    rate: float
    total: int
    warm_up: int = 100
    decay: float = 0.99
    floor: float = 1e-12
    averaging: float = 0.999

    def rate_at(self, step: int) -> float:
        """eta_t of step t = 1 .. T."""
        warm = min(1.0, step / self.warm_up) if self.warm_up else 1.0
        return self.rate * warm * 0.5 * (1.0 + math.cos(math.pi * min(1.0, (step - 1) / self.total)))


class Moving(NamedTuple):
    """What an optimiser keeps: parameters theta, squares v, average; all vectors of one length."""

    parameters: np.ndarray
    squares: np.ndarray
    average: np.ndarray


def begin(parameters: np.ndarray) -> Moving:
    """Before the first step."""
    return Moving(parameters, np.zeros_like(parameters), parameters.copy())


def step(moving: Moving, gradient: np.ndarray, number: int, schedule: Schedule) -> Moving:
    """Step ``number``, counted from 1; nothing that is given is changed."""
    real = gradient.dtype.type
    squares = real(schedule.decay) * moving.squares
    squares += real(1.0 - schedule.decay) * gradient * gradient
    parameters = moving.parameters - real(schedule.rate_at(number)) * gradient / np.sqrt(
        squares + real(schedule.floor)
    )
    # the average of a few steps is not to remember the start
    kept = min(schedule.averaging, number / (number + 9.0))
    average = moving.average + real(1.0 - kept) * (parameters - moving.average)
    return Moving(parameters, squares, average)

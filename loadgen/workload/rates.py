"""Rates over a window of time, each defined by the inverse of its integral."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from loadgen.config.load_profile import LoadProfile, Phase
from loadgen.util.arrays import Floats

HALVINGS = 60  # of the bracket around a time in a wave: to the last bit of a double


class Rate(Protocol):
    """A rate over a window of time, defined by its integral."""

    @property
    def mean_rps(self) -> float:
        """The mean rate over the window, requests/s."""

    def when(self, expected: Floats, window_s: float) -> Floats:
        """Return the times by which these numbers of requests are expected.

        Args:
            expected: Numbers of requests, float64, shape (n,).
            window_s: The length of the window, s.

        Returns:
            Seconds from the start of the window, shape (n,).
        """


@dataclass(frozen=True)
class Flat:
    """A constant rate, requests/s."""

    mean_rps: float

    def when(self, expected: Floats, window_s: float) -> Floats:
        """Invert the integral of the rate."""
        return expected / self.mean_rps


@dataclass(frozen=True)
class LinearRamp:
    """A rate that changes linearly from `start_rps` to `end_rps`, of which at least one is above 0."""

    start_rps: float
    end_rps: float

    @property
    def mean_rps(self) -> float:
        """As `Rate.mean_rps`."""
        return (self.start_rps + self.end_rps) / 2

    def when(self, expected: Floats, window_s: float) -> Floats:
        """Invert the integral of the rate."""
        slope = (self.end_rps - self.start_rps) / window_s
        # The root of start * t + slope * t**2 / 2 = expected, in the form that cancels no digits.
        divisor = self.start_rps + np.sqrt(np.maximum(self.start_rps**2 + 2 * slope * expected, 0))
        at_s: Floats = np.divide(2 * expected, divisor, out=np.zeros_like(expected), where=divisor > 0)
        return at_s


@dataclass(frozen=True)
class ExponentialRamp:
    """A rate that grows exponentially, 0 < `start_rps` < `end_rps`."""

    start_rps: float
    end_rps: float

    @property
    def mean_rps(self) -> float:
        """As `Rate.mean_rps`."""
        return (self.end_rps - self.start_rps) / math.log(self.end_rps / self.start_rps)

    def when(self, expected: Floats, window_s: float) -> Floats:
        """Invert the integral of the rate."""
        growth = math.log(self.end_rps / self.start_rps) / window_s
        return np.log1p(expected * (growth / self.start_rps)) / growth


@dataclass(frozen=True)
class Wave:
    """A rate that is a sine wave, from `start_rps` to `turn_rps` after half a period, and back."""

    start_rps: float
    turn_rps: float
    period_s: float

    def when(self, expected: Floats, window_s: float) -> Floats:
        """Invert the integral of the rate, by halving brackets."""
        low, high = np.zeros_like(expected), np.full_like(expected, window_s)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            below = self._expected(middle) < expected
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return high

    def _expected(self, at_s: Floats) -> Floats:
        swing, angular = (self.start_rps - self.turn_rps) / 2, 2 * math.pi / self.period_s
        return (self.start_rps + self.turn_rps) / 2 * at_s + swing / angular * np.sin(angular * at_s)


@dataclass(frozen=True)
class ProfileRate:
    """The rate of a `LoadProfile`; its window is as long as the profile."""

    profile: LoadProfile

    @property
    def mean_rps(self) -> float:
        """The mean rate over the profile, requests/s."""
        return self.profile.mean

    def when(self, expected: Floats, window_s: float) -> Floats:
        """Invert the integral of the rate in the phase in which each number is reached."""
        edges = np.cumsum([0.0, *(phase.integral(phase.length_s) for phase in self.profile.phases)])
        at_s = np.full_like(expected, self.profile.length_s)
        parts = zip(self.profile.phases, self.profile.windows_s(), pairwise(edges), strict=True)
        for phase, (start_s, _), (first, last) in parts:
            here = (expected >= first) & (expected < last)
            at_s[here] = start_s + _rate(phase).when(expected[here] - first, phase.length_s)
        return at_s


def _rate(phase: Phase) -> LinearRamp | Wave:
    if phase.period_s is None:
        return LinearRamp(phase.first, phase.last)
    return Wave(phase.first, phase.last, phase.period_s)

"""Sums over cells of a table from all that was measured of them: the linear estimate of least variance."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from queries.arrays import Booleans, Floats
from smalldb.inference.evidence import Evidence
from smalldb.noise.noise_protocol import Noise
from smalldb.noise.simulating import DRAWS, Uniforms

_RANK = 1e-9  # eigenvalues below, relative to the largest and to 1, are none
_SEEN = 1e-7  # of what is left of a sum that is known


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Estimates of sums over cells."""

    values: Floats  # shape (sums,); of those that are not known nothing
    known: Booleans  # which of them follow from what was measured
    # what each released sum counts in them, for each of `evidence`: shape (its sums, sums)
    weights: tuple[Floats, ...]
    evidence: tuple[Evidence, ...]  # what was measured

    def noise(self) -> Floats:
        """Return the noise of the estimates, simulated: shape (DRAWS, sums); always the same."""
        parts = zip(self.evidence, self.weights, strict=True)
        used = [(item, weights) for item, weights in parts if weights.any()]
        return _simulated(
            len(self.values),
            tuple((item.noise, weights.tobytes(), item.membership.tobytes()) for item, weights in used),
        )

    def used(self) -> list[Evidence]:
        """Return what counts in any of them."""
        largest = [float(np.abs(weights).max(initial=0.0)) for weights in self.weights]
        parts = zip(self.evidence, largest, strict=True)
        return [item for item, weight in parts if weight > 1e-6 * max(largest)]


@lru_cache(maxsize=16)
def _simulated(count: int, parts: tuple[tuple[Noise, bytes, bytes], ...]) -> Floats:
    """Return the noise of `count` sums, simulated, from the weights and kinds of each noise."""
    uniforms, noises = Uniforms.fixed(), np.zeros((DRAWS, count))
    for noise, weights, kinds in parts:
        rows = np.frombuffer(weights, dtype=np.float64).reshape(-1, count)
        noises += noise.simulated(rows, np.frombuffer(kinds, dtype=np.int64), uniforms)
    noises.setflags(write=False)
    return noises


# Proof: docs/proofs/noise.md, lemma 6.
def least_variance(evidence: Sequence[Evidence], wanted: Floats, n: int | None) -> Sums:
    """Estimate sums over cells by generalised least squares, linear in what was released."""
    cells, count = wanted.shape
    free, start = np.eye(cells), np.zeros(cells)
    if n is not None:  # counts of all cells are n / cells, and what adds up to 0
        start = np.full(cells, n / cells)
        free = np.linalg.qr(np.column_stack([np.ones(cells), np.eye(cells)[:, : cells - 1]]))[0][:, 1:]
    seen = np.zeros((free.shape[1], free.shape[1]))
    for item in evidence:
        directions = free.T @ (item.cells / np.linalg.norm(item.cells, axis=0))
        seen += directions @ directions.T
    scale, axes = np.linalg.eigh(seen)
    axes = axes[:, scale > _RANK * max(scale.max(initial=0.0), 1.0)]
    goals = free.T @ wanted
    lengths = np.maximum(np.linalg.norm(wanted, axis=0), 1e-300)
    goals[:, np.linalg.norm(goals, axis=0) <= _RANK * lengths] = 0.0  # all of it is known: it has no noise
    left = np.linalg.norm(goals - axes @ (axes.T @ goals), axis=0)
    known = left <= _SEEN * lengths
    basis = free @ axes
    information = np.zeros((basis.shape[1], basis.shape[1]))
    solved = [np.linalg.solve(item.covariance, (basis.T @ item.cells).T) for item in evidence]
    for item, of_sums in zip(evidence, solved, strict=True):  # shape (its sums, basis)
        information += (basis.T @ item.cells) @ of_sums
    inverse = np.linalg.solve(information, axes.T @ goals) if basis.shape[1] else np.zeros((0, count))
    weights = tuple(np.asarray(of_sums @ inverse, dtype=np.float64) for of_sums in solved)
    values = start @ wanted
    for item, counted in zip(evidence, weights, strict=True):
        values = values + (item.sums - start @ item.cells) @ counted
    return Sums(values, known, weights, tuple(evidence))

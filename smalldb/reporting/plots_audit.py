"""The picture of an audit: how well neighbours can be told apart, exactly, beside what is guaranteed."""

from collections.abc import Mapping
from math import exp, expm1

import numpy as np

from smalldb.auditing import Accuracy, Profile
from smalldb.reporting.plots_base import COLOURS, bound, canvas, readable, rendered

POINTS = 60


def plot_audit(profiles: Mapping[str, Profile], error: Accuracy, title: str, form: str) -> bytes:
    """Draw delta of every epsilon, the trade-off curve, and the worst error's probability over all tables."""
    figure = canvas(13, 4.4)
    privacy, tests, errors = figure.subplots(1, 3)
    (epsilon,) = {float(profile.epsilon) for profile in profiles.values()}
    spent = np.linspace(0, epsilon * 1.02, POINTS)
    alphas = np.linspace(0, 1, POINTS)
    for colour, (name, profile) in zip(COLOURS, profiles.items(), strict=False):
        deltas = [profile.delta(float(e)) for e in spent]
        privacy.plot(spent, deltas, color=colour, linewidth=2, label=f"{name}, exactly")
        tests.plot(alphas, [profile.tradeoff(float(a)) for a in alphas], color=colour, linewidth=2)
    # what epsilon alone guarantees is randomised response
    promised = [max(0.0, -expm1(e - epsilon) / (1 + exp(-epsilon))) for e in spent]
    privacy.plot(spent, promised, color="0.3", linestyle="--", label="guaranteed by epsilon alone")
    guaranteed = [max(0.0, 1 - exp(epsilon) * a, exp(-epsilon) * (1 - a)) for a in alphas]
    tests.plot(alphas, guaranteed, color="0.3", linestyle="--")
    tests.plot([0, 1], [1, 0], color="0.7", linewidth=1, linestyle=":", label="nothing can be told")
    privacy.set(xlabel="epsilon'", ylabel="delta(epsilon')", xlim=(0, spent[-1]))
    privacy.set_ylim(bottom=0)
    tests.set(
        xlabel="error of the first kind", ylabel="least error of the second kind", xlim=(0, 1), ylim=(0, 1)
    )

    positions = [0.0, *map(float, error.errors)]
    above = [1.0, *(float(high) for _, high in error.exceedances)]
    errors.step(positions, above, where="post", color=COLOURS[2], linewidth=2, label="worst table, exactly")
    said = error.promised()
    for name, line in (("sharp", "--"), ("theorem 4.5", ":")):
        errors.axvline(
            said[name], color="0.3", linestyle=line, label=f"{name}, beta 0.05: {bound(said[name])}"
        )
    errors.axhline(0.05, color="0.8", linewidth=1)
    errors.set_yscale("log")
    errors.set_ylim(1e-4, 1.3)
    errors.set_xlim(0, min(1.02, max(said["theorem 4.5"], positions[-1]) * 1.05))
    readable(errors.yaxis)
    errors.set(xlabel="a: largest error over the queries", ylabel="P(error > a)")
    for axes in (privacy, tests, errors):
        axes.grid(True, which="major", alpha=0.25)
        if axes is not tests:
            axes.legend(frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11)
    return rendered(figure, form)

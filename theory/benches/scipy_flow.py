#!/usr/bin/env python3
"""The same gradient flows solved by scipy and by this crate: do the answers agree, and how do the wall times compare?

    pip install numpy scipy && python3 theory/benches/scipy_flow.py

For four layouts at K = 4, d = 5 both sides solve dW/dt = -dL/dW from the same weights towards the same target, with
the Dormand-Prince pair of order 5(4), rtol 1e-7 and atol 1e-10, up to the time at which the loss is 1e-6 of that of
the zero map. Runs take turns, so that what else the machine does slows both sides alike; each side counts with its
fastest run. The crate runs as `cargo run --release -p theory --example flow_cases`, built first, and times itself
around the solution alone, as the timing here does.
"""

import os

# Threads only cost time at this size. numpy reads this when it is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

ROUNDS = 15
AGREEMENT = 1e-4
TARGET_RATIO = 20
EXAMPLE = ["--quiet", "--release", "-p", "theory", "--example", "flow_cases"]


class Flow:
    """One case: a field and a loss, with every array they write to allocated once."""

    def __init__(self, head, shortcuts, target, weights):
        _, self.name, depth, width, level = head.split()
        self.depth, width, self.level = int(depth), int(width), float(level)
        pairs = [tuple(map(int, s.split(":"))) for s in shortcuts.split()]
        self.sources = [[i for i, j in pairs if j == node] for node in range(self.depth + 1)]
        shape = (self.depth, width, width)
        self.target = np.array(target.split(), dtype=float).reshape(shape[1:])
        self.start = np.array(weights.split(), dtype=float)
        self.shape = shape
        self.states = np.empty((self.depth + 1, width, width))
        self.states[0] = np.eye(width)
        self.slopes = np.empty_like(self.states)
        self.scratch = np.empty(shape[1:])

    def forward(self, weights):
        """Fills the states A_0..A_K; leaves E = A_K - Y in the last slope."""
        states = self.states
        for layer in range(1, self.depth + 1):
            state = states[layer]
            if layer == 1:
                state[:] = weights[0]
            else:
                np.matmul(weights[layer - 1], states[layer - 1], out=state)
            for source in self.sources[layer]:
                state += states[source]
        np.subtract(states[self.depth], self.target, out=self.slopes[self.depth])

    def field(self, _time, values):
        """-dL/dW."""
        weights = values.reshape(self.shape)
        self.forward(weights)
        states, slopes = self.states, self.slopes
        slopes[: self.depth] = 0.0
        # A new array: the solver keeps it.
        out = np.empty(self.shape)
        for layer in range(self.depth, 0, -1):
            slope = slopes[layer]
            for source in self.sources[layer]:
                if source > 0:
                    slopes[source] += slope
            if layer == 1:
                out[0] = slope
            else:
                np.matmul(slope, states[layer - 1].T, out=out[layer - 1])
                np.matmul(weights[layer - 1].T, slope, out=self.scratch)
                slopes[layer - 1] += self.scratch
        np.negative(out, out=out)
        return out.reshape(-1)

    def excess(self, _time, values):
        """ln(loss / level): the event is its zero."""
        self.forward(values.reshape(self.shape))
        error = self.slopes[self.depth].reshape(-1)
        return np.log(0.5 * error.dot(error) / self.level)

    def solve(self):
        """The time to the level, steps, evaluations and wall seconds."""

        def event(moment, values):
            return self.excess(moment, values)

        # A bound method takes no attributes.
        event.terminal, event.direction = True, -1
        clock = time.perf_counter()
        solution = solve_ivp(
            self.field, (0.0, 200.0), self.start, method="RK45", rtol=1e-7, atol=1e-10, events=event
        )
        seconds = time.perf_counter() - clock
        if solution.t_events[0].size != 1:
            sys.exit(f"{self.name}: scipy ended without reaching the level: {solution.message}")
        return solution.t_events[0][0], len(solution.t) - 1, solution.nfev, seconds


def main():
    root = Path(__file__).resolve().parents[2]
    subprocess.run(["cargo", "build", *EXAMPLE], cwd=root, check=True)
    run = ["cargo", "run", *EXAMPLE]
    with subprocess.Popen(run, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as crate:
        flows = []
        while (head := crate.stdout.readline()).startswith("case "):
            flows.append(Flow(head, *(crate.stdout.readline() for _ in range(3))))
        if head.strip() != "ready":
            sys.exit(f"expected `ready` from the crate, got {head!r}")

        def ask(number):
            crate.stdin.write(f"{number}\n")
            crate.stdin.flush()
            moment, steps, evaluations, seconds = crate.stdout.readline().split()
            return float(moment), int(steps), int(evaluations), float(seconds)

        runs = [[(ask(number), flow.solve()) for number, flow in enumerate(flows)] for _ in range(ROUNDS)]
        crate.stdin.close()

    print(f"{'layout':16} {'time':>9} {'differs':>9}  {'steps':>11}  {'crate':>10} {'scipy':>10} {'ratio':>7}")
    worst, ratios = 0.0, []
    for number, flow in enumerate(flows):
        ours, theirs = (min((run[number][side] for run in runs), key=lambda run: run[3]) for side in (0, 1))
        differs, ratio = abs(ours[0] / theirs[0] - 1.0), theirs[3] / ours[3]
        worst, ratios = max(worst, differs), [*ratios, ratio]
        print(
            f"{flow.name:16} {ours[0]:9.5f} {differs:9.1e}  {ours[1]:4} / {theirs[1]:4}  "
            f"{1e6 * ours[3]:7.0f} us {1e3 * theirs[3]:7.1f} ms {ratio:7.0f}"
        )
    print(f"smallest ratio {min(ratios):.0f}, to be at least {TARGET_RATIO}")
    print(f"largest relative difference {worst:.1e}, to be at most {AGREEMENT}")
    if worst > AGREEMENT or min(ratios) < TARGET_RATIO:
        sys.exit(1)


if __name__ == "__main__":
    main()

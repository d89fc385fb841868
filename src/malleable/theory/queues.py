"""Queues with many servers and one line: Erlang C, Pollaczek–Khinchine, M/PH/c.

Jobs arrive in a Poisson stream of rate λ, wait first come first served, and take a server for a time S; the
offered load is a = λ E[S] and all is stable iff a < c.

**M/M/c** (Erlang 1917): P(wait) = B / (1 − (a/c)(1 − B)), E[W] = P(wait) / (c/E[S] − λ), B the loss formula

    1/B = Σ_{j=0..c} c(c−1)…(c−j+1) / a^j

whose terms are all positive, so that it is accurate for a million servers.

**M/G/1** (Pollaczek 1930, Khinchine 1932): E[W] = λ E[S²] / (2(1 − a)).

**M/PH/c**: with S of phase type (p, Q) the state is (jobs present, how many busy servers are in which phase),
a quasi-birth–death process (Neuts 1981; Latouche & Ramaswami 1999). Level n < c holds the compositions of n,
every level n ≥ c those of c, with arrivals λI, local moves A₁ and departures A₂ (the next job enters). G, the
first-passage probabilities one level down from above c, comes by logarithmic reduction; π_{n+1} = π_n R with
R = λ(−A₁ − λG)⁻¹. The levels below c are eliminated upwards: T_n is minus the generator of the process that
is watched in level n until it goes above, T_n = −L_n − D_n T_{n−1}⁻¹ U_{n−1} with L, D, U the moves within,
down and up. It is an M-matrix with T_n 1 = λ1, so nothing cancels.
"""

from __future__ import annotations

from math import comb, floor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from malleable.errors import ParameterError, UnstableError, UnsupportedError
from malleable.theory.markov_chain import Lattice, transition_rates

if TYPE_CHECKING:
    from malleable.contracts import Distribution, FloatArray


class QueueMeans(NamedTuple):
    """Stationary means of a queue."""

    jobs: float
    """Mean number present, waiting or in service."""
    waiting_time: float
    response_time: float
    waiting_probability: float


def erlang_c(servers: int, offered_load: float) -> float:
    """Probability that an arrival has to wait in M/M/c."""
    _check(servers, offered_load)
    if offered_load == 0.0:
        return 0.0
    with np.errstate(over="ignore"):  # an infinite sum means that no job ever waits
        terms = np.cumprod(np.arange(servers, 0, -1) / offered_load)
        loss = 1.0 / (1.0 + terms.sum())
    return float(loss / (1.0 - offered_load / servers * (1.0 - loss)))


def mmc(arrival_rate: float, mean_service: float, servers: int) -> QueueMeans:
    """M/M/c, by Erlang C."""
    probability = erlang_c(servers, arrival_rate * mean_service)
    waiting = probability / (servers / mean_service - arrival_rate)
    return _means(arrival_rate, mean_service, waiting, probability)


def mmc_waiting_time(arrival_rate: float, mean_service: float, servers: int) -> float:
    """Mean time in line in M/M/c."""
    return mmc(arrival_rate, mean_service, servers).waiting_time


def mg1_waiting_time(arrival_rate: float, mean_service: float, second_moment: float) -> float:
    """Mean time in line in M/G/1; infinite where E[S²] is."""
    _check(1, arrival_rate * mean_service)
    if arrival_rate == 0.0:
        return 0.0
    return arrival_rate * second_moment / (2.0 * (1.0 - arrival_rate * mean_service))


def mphc(
    arrival_rate: float, initial: FloatArray, generator: FloatArray, servers: int, *, max_states: int = 1001
) -> QueueMeans:
    """M/PH/c for service times of phase type (p, Q) = (initial, generator).

    Work grows with the cube of the number of compositions C(c+m−1, m−1) of c servers in m phases (c + 1 for
    two phases); beyond `max_states` of them it is refused.
    """
    p, Q = np.asarray(initial, dtype=float), np.asarray(generator, dtype=float)
    if Q.shape != (len(p), len(p)) or abs(p.sum() - 1.0) > 1e-9:
        raise ParameterError(f"{p} and a {Q.shape} matrix are no phase-type law", "p must sum to 1")
    mean_service = float(-np.linalg.solve(Q, np.ones(len(p))) @ p)
    _check(servers, arrival_rate * mean_service)
    if (size := comb(servers + len(p) - 1, servers)) > max_states:
        raise UnsupportedError(
            f"{servers} servers and {len(p)} phases make {size} states a level, more than {max_states}",
            "simulate it, use fewer phases, or raise max_states",
        )
    if arrival_rate == 0.0:
        return _means(0.0, mean_service, 0.0, 0.0)
    probability, queue = _solve_levels(_Levels(arrival_rate, p, Q, servers))
    return _means(arrival_rate, mean_service, queue / arrival_rate, probability)


def mgc_response_time(
    arrival_rate: float, size: Distribution, servers: int, speed: float = 1.0
) -> QueueMeans:
    """The best exact answer there is for job sizes `size` on servers that run at `speed`."""
    phases = size.phase_type()
    mean_service = size.mean / speed
    if phases is not None and len(phases[0]) == 1:
        return mmc(arrival_rate, mean_service, servers)
    if servers == 1:
        waiting = mg1_waiting_time(arrival_rate, mean_service, size.moment(2) / speed**2)
        return _means(arrival_rate, mean_service, waiting, arrival_rate * mean_service)
    if phases is not None:
        return mphc(arrival_rate, phases[0], phases[1] * speed, servers)
    _check(servers, arrival_rate * mean_service)
    raise UnsupportedError(
        f"no exact formula for {servers} servers and sizes that are {size.kind}", "simulate it"
    )


def _check(servers: int, offered_load: float) -> None:
    if servers < 1 or not offered_load >= 0.0:
        raise ParameterError(f"no queue has {servers} servers and offered load {offered_load:g}")
    if offered_load >= servers:
        raise UnstableError(
            f"offered load {offered_load:.6g} overwhelms {servers} servers",
            f"at least {floor(offered_load) + 1} servers would do" if np.isfinite(offered_load) else "",
        )


def _means(arrival_rate: float, mean_service: float, waiting: float, probability: float) -> QueueMeans:
    """Little's law gives the jobs present."""
    response = waiting + mean_service
    return QueueMeans(float(arrival_rate * response), float(waiting), float(response), float(probability))


class _Levels:
    """The blocks of the generator, cut from the rates on all compositions of 0 … c."""

    def __init__(self, arrival_rate: float, p: FloatArray, Q: FloatArray, servers: int) -> None:
        self.arrival_rate, self.servers = arrival_rate, servers
        self.lattice = Lattice(len(p), servers, max_states=10**8)
        one = np.ones((len(self.lattice.states), 1))
        self.rates = transition_rates(self.lattice, np.array([arrival_rate]), [(p, Q)], one)
        # The lattice ends at c busy servers, but arrivals do not.
        self.outflow = self.rates.sum(axis=1) + arrival_rate * (self.lattice.totals == servers)

    def block(self, level: int, to: int) -> Any:
        """Rates from the states of one level to those of another."""
        return self.rates[self.lattice.level(level), self.lattice.level(to)]

    def local(self, level: int) -> FloatArray:
        """Moves within a level, with the outflow on the diagonal."""
        block: FloatArray = self.block(level, level).toarray()
        return block - np.diag(self.outflow[self.lattice.level(level)])


def _solve_levels(levels: _Levels) -> tuple[float, float]:
    """P(wait) and the mean number waiting."""
    rate, c = levels.arrival_rate, levels.servers
    local = levels.local(c)
    down = (levels.block(c, c - 1) @ levels.block(c - 1, c)).toarray() / rate
    upward = local + rate * _first_passage(rate, local, down)
    returns, below, unit = _below(levels)
    at_c = _stationary(upward + returns)
    # π_c (I − R)⁻¹ 1 and π_c R (I − R)⁻² 1 without forming R = λV⁻¹, V = −upward.
    V = -upward
    excess = V - rate * np.eye(len(V))
    tail = np.linalg.solve(excess, V.sum(axis=1))
    queue = rate * np.linalg.solve(excess, tail)
    total = at_c @ (below + unit * tail)
    return unit * float(at_c @ tail / total), unit * float(at_c @ queue / total)


def _below(levels: _Levels) -> tuple[FloatArray, FloatArray, float]:
    """Eliminate the levels under c.

    Returns the rates at which level c comes back to itself through them, and the mass in them per `unit` of
    mass in each state of level c. The unit shrinks so that ratios beyond 1e308 do not overflow.
    """
    T = np.array([[levels.arrival_rate]])
    mass, unit = np.ones(1), 1.0
    for level in range(1, levels.servers + 1):
        down, up = levels.block(level, level - 1), levels.block(level - 1, level).toarray()
        solved = np.linalg.solve(T, np.column_stack([up, mass]))
        # Rows are probabilities of where the next level is entered; keep their sum exact.
        climb = solved[:, :-1] / solved[:, :-1].sum(axis=1, keepdims=True)
        returns, below = down @ climb, down @ solved[:, -1]
        T = -levels.local(level) - returns
        if (scale := below.max()) > 1e100:
            below, unit = below / scale, unit / scale
        mass = unit + below
    return returns, below, unit


def _first_passage(rate: float, local: FloatArray, down: FloatArray) -> FloatArray:
    """G by logarithmic reduction (Latouche & Ramaswami 1993): the step doubles every round."""
    identity = np.eye(len(local))
    inverse = np.linalg.inv(-local)
    high, low = rate * inverse, inverse @ down
    G, reach = low, high
    for _ in range(64):
        both = np.linalg.solve(identity - high @ low - low @ high, np.hstack([high @ high, low @ low]))
        high, low = np.hsplit(both, 2)
        G = G + reach @ low
        reach = reach @ high
        if reach.max() < 1e-16:
            break
    return G


def _stationary(generator: FloatArray) -> FloatArray:
    """π Q = 0, π 1 = 1: the sum replaces one equation, which the others imply."""
    system = generator.T.copy()
    system[-1] = 1.0
    right = np.zeros(len(system))
    right[-1] = 1.0
    return np.asarray(np.linalg.solve(system, right), dtype=float)

"""Queues against textbook values, against each other, and against a plain dense Markov chain."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq
from scipy.sparse import linalg

from malleable.contracts import Distribution
from malleable.distributions.exponential import Exponential
from malleable.errors import ParameterError, UnstableError, UnsupportedError
from malleable.theory.queues import (
    erlang_c,
    mg1_waiting_time,
    mgc_response_time,
    mmc,
    mmc_waiting_time,
    mphc,
)

H2 = np.array([0.5, 0.5]), np.diag([-1.0, -9.0])
E2 = np.array([1.0, 0.0]), np.array([[-2.0, 2.0], [0.0, -2.0]])
LOOPS = (
    np.array([0.2, 0.5, 0.3]),
    np.array([[-3.0, 1.0, 0.5], [0.7, -2.0, 0.0], [0.0, 1.1, -4.0]]),
)


@dataclass(frozen=True)
class Plain(Distribution):
    """A law known by its moments only, or by its phases as well."""

    phases: object = None
    kind = "plain"

    def __post_init__(self):
        """Skip validation: the phases are arrays."""

    def moment(self, order):
        if self.phases is None:
            return 1.0 / (order + 1.0)  # uniform on (0, 1)
        return moment(*self.phases, order)

    def sample(self, rng, size):
        return rng.random(size)

    def scaled(self, factor):
        raise NotImplementedError

    def phase_type(self):
        return self.phases


def moment(p, Q, order):
    return factorial(order) * p @ np.linalg.matrix_power(np.linalg.inv(-Q), order) @ np.ones(len(p))


def shifted(busy, u, change):
    return tuple(b + change * (i == u) for i, b in enumerate(busy))


def moves_from(line, busy, rate, p, Q, servers, longest):
    """Where the queue goes from (jobs in line, busy servers by phase), and how fast."""
    if sum(busy) < servers:
        yield from (((0, shifted(busy, u, +1)), rate * pu) for u, pu in enumerate(p))
    elif line < longest:
        yield (line + 1, busy), rate
    for u, b in enumerate(busy):
        left, leaving = shifted(busy, u, -1), -b * Q[u].sum()
        yield from (((line, shifted(left, v, +1)), b * Q[u, v]) for v in range(len(p)) if v != u)
        if line:
            yield from (((line - 1, shifted(left, v, +1)), leaving * pv) for v, pv in enumerate(p))
        else:
            yield (0, left), leaving


def written_out(rate, p, Q, servers, longest, solver):
    """The same queue written state by state and solved as one linear system; returns E[N] and P(wait)."""
    index = {(0, (0,) * len(p)): 0}
    order, entries = list(index), []
    for here in order:  # grows while it is walked
        for there, r in moves_from(*here, rate, p, Q, servers, longest):
            if r > 0:
                if there not in index:
                    index[there] = len(order)
                    order.append(there)
                entries.append((index[here], index[there], r))
    row, column, value = map(np.array, zip(*entries, strict=True))
    flow = sparse.coo_array((value, (column, row)), shape=(len(order),) * 2).tocsr()
    balance = (flow - sparse.diags_array(flow.sum(axis=0))).tocsc()
    law = np.append(1.0, solver(balance[1:, 1:], -balance[1:, [0]].toarray().ravel()))
    law /= law.sum()
    jobs = np.array([line + sum(busy) for line, busy in order])
    full = np.array([sum(busy) == servers for _, busy in order])
    return jobs @ law, full @ law


def dense(matrix, right):
    return np.linalg.solve(matrix.toarray(), right)


@pytest.mark.parametrize(
    ("servers", "load", "expected"),
    [(1, 0.5, 0.5), (2, 1.0, 1 / 3), (3, 2.0, 4 / 9), (10, 8.0, 0.409180150796), (5, 0.0, 0.0)],
)
def test_erlang_c_textbook_values(servers, load, expected):
    """Erlang C agrees with values worked out by hand and with the tables."""
    assert erlang_c(servers, load) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(("servers", "load"), [(1000, 950.0), (1_000_000, 999_000.0)])
def test_erlang_c_equals_the_recursion_for_many_servers(servers, load):
    """The product form stays accurate up to a million servers."""
    inverse = 1.0
    for k in range(1, servers + 1):
        inverse = 1.0 + inverse * k / load
    loss = 1.0 / inverse
    assert erlang_c(servers, load) == pytest.approx(loss / (1 - load / servers * (1 - loss)), rel=1e-10)


def test_no_job_waits_for_ten_thousand_idle_servers():
    """A probability below 1e-308 is zero, not an overflow."""
    assert erlang_c(10_000, 1.0) == 0.0
    queue = mphc(1.0, *H2, 200)
    assert queue.waiting_probability == 0.0
    assert queue.response_time == pytest.approx(5 / 9)


def test_mmc_is_the_closed_form_for_one_server():
    """M/M/1: E[T] = 1/(μ − λ)."""
    means = mmc(0.7, 1.0, 1)
    assert means.response_time == pytest.approx(1 / 0.3)
    assert means.jobs == pytest.approx(0.7 / 0.3)
    assert mmc_waiting_time(0.7, 1.0, 1) == pytest.approx(0.7 / 0.3)


@pytest.mark.parametrize("servers", [1, 2, 17, 200])
@pytest.mark.parametrize("utilisation", [0.05, 0.7, 0.999])
def test_one_phase_is_erlang_c(servers, utilisation):
    """M/PH/c with a single phase is M/M/c."""
    rate = 3.0 * servers * utilisation
    expected = mmc(rate, 1 / 3, servers)
    assert mphc(rate, [1.0], [[-3.0]], servers) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("phases", [H2, E2, LOOPS], ids=["H2", "E2", "loops"])
@pytest.mark.parametrize("utilisation", [0.01, 0.6, 0.99])
def test_one_server_is_pollaczek_khinchine(phases, utilisation):
    """M/PH/1 has the Pollaczek–Khinchine waiting time."""
    mean = moment(*phases, 1)
    rate = utilisation / mean
    means = mphc(rate, *phases, 1)
    assert means.waiting_time == pytest.approx(mg1_waiting_time(rate, mean, moment(*phases, 2)), rel=1e-9)
    assert means.waiting_probability == pytest.approx(utilisation, rel=1e-9)


@pytest.mark.parametrize("phases", [H2, E2, LOOPS], ids=["H2", "E2", "loops"])
@pytest.mark.parametrize("servers", [2, 3, 5])
def test_phase_type_service_equals_a_dense_chain(phases, servers):
    """M/PH/c equals the same chain written out state by state and solved densely."""
    rate = 0.55 * servers / moment(*phases, 1)
    jobs, probability = written_out(rate, *phases, servers, 60, dense)
    means = mphc(rate, *phases, servers)
    assert means.jobs == pytest.approx(jobs, rel=1e-8)
    assert means.waiting_probability == pytest.approx(probability, rel=1e-8)


def test_variability_costs_waiting_time_at_equal_load():
    """With many servers, Erlang sizes wait less and hyperexponential ones more than exponential ones."""
    rate, servers = 0.95 * 100, 100
    erlang = mphc(rate, *E2, servers).waiting_time
    hyper = mphc(rate, H2[0], H2[1] * 5 / 9, servers).waiting_time
    assert erlang < mmc_waiting_time(rate, 1.0, servers) < hyper


def test_little_and_the_busy_servers_agree():
    """Jobs present are jobs waiting, λW, plus busy servers, λE[S]."""
    means = mphc(20.0, *H2, 14)
    assert means.jobs == pytest.approx(20.0 * means.waiting_time + 20.0 * 5 / 9)
    assert means.response_time == pytest.approx(means.waiting_time + 5 / 9)


def pools(n, beta):
    """FW-CAM on the paper's workload, from its definition: λ, widths, speeds and pool sizes."""
    rates = np.array([1.0, 2.0, 5 / 3]) * 15 * n / 112
    loads = rates * np.array([1 / 5, 5 / 9, 1 / 3])

    def widths(l):
        return np.maximum(1.0, [0.3 / 0.7 / l, 2.0 / l, np.sqrt(4.0 / l)])

    def speeds(k):
        return np.array([k[0] ** 0.3, k[1] ** 0.5, 1 / (0.2 + 0.8 / k[2])])

    def excess(l):
        return loads @ (widths(l) / speeds(widths(l))) - (n - n**beta)

    k = widths(brentq(excess, 1e-4, 10.0, xtol=1e-15, rtol=1e-14))
    share = loads * k / speeds(k)
    return rates, k, speeds(k), np.floor(n * share / share.sum() / k + 1e-9).astype(int)


@pytest.mark.parametrize(
    ("n", "slots", "cost"), [(64, [2, 6, 3], 0.33994747), (1024, [26, 54, 35], 0.20212179)]
)
def test_exact_cost_of_fw_cam(n, slots, cost):
    """FW-CAM with β = .8 on the paper's workload costs what MODEL.md §6 says, to eight digits."""
    rates, k, speed, servers = pools(n, 0.8)
    assert servers.tolist() == slots
    if n == 64:
        assert k == pytest.approx([1.6239470, 7.5784195, 3.8931785], abs=1e-7)
    sizes = [Exponential(5.0), Plain(H2), Exponential(3.0)]
    times = [mgc_response_time(rates[i], sizes[i], int(servers[i]), speed[i]).response_time for i in range(3)]
    assert rates * [1, 2, 1] @ times / rates.sum() == pytest.approx(cost, abs=6e-9)


def test_the_dispatcher_picks_the_formula():
    """Exponential sizes go to Erlang C, one server to Pollaczek–Khinchine, phases to M/PH/c."""
    assert mgc_response_time(8.0, Exponential(0.5), 10, speed=2.0) == mmc(8.0, 1.0, 10)
    uniform = mgc_response_time(1.0, Plain(), 1)
    assert uniform.waiting_time == pytest.approx(1 / 3)
    assert uniform.waiting_probability == pytest.approx(0.5)
    assert mgc_response_time(6.0, Plain(H2), 4, speed=3.0) == pytest.approx(mphc(6.0, H2[0], 3 * H2[1], 4))
    assert mgc_response_time(0.5, Plain(H2), 1) == pytest.approx(mphc(0.5, *H2, 1))
    with pytest.raises(UnsupportedError, match="simulate it"):
        mgc_response_time(1.0, Plain(), 2)


def test_an_overloaded_queue_names_the_servers_that_would_do():
    """Offered load at or above the servers is unstable, and the hint is tight."""
    with pytest.raises(UnstableError, match="at least 9 servers"):
        erlang_c(8, 8.0)
    with pytest.raises(UnstableError, match="at least 6 servers"):
        mphc(10.0, *H2, 5)
    with pytest.raises(UnstableError, match="at least 2 servers"):
        mgc_response_time(3.0, Plain(), 1)
    assert 0.0 < erlang_c(9, 8.0) < 1.0


def test_an_infinite_second_moment_means_an_infinite_wait():
    """Pollaczek–Khinchine has no finite answer then, and no error either."""
    assert mg1_waiting_time(0.5, 1.0, np.inf) == np.inf
    assert mg1_waiting_time(0.0, 1.0, np.inf) == 0.0


def test_an_empty_queue_has_no_wait():
    """Without arrivals the response time is the service time."""
    assert mphc(0.0, *H2, 3) == pytest.approx((0.0, 0.0, 5 / 9, 0.0))


def test_bad_questions_are_refused():
    """Nonsense parameters and state spaces out of reach get an error of ours."""
    with pytest.raises(ParameterError, match="0 servers"):
        erlang_c(0, 0.5)
    with pytest.raises(ParameterError, match="no phase-type law"):
        mphc(1.0, [0.5, 0.4], H2[1], 2)
    with pytest.raises(UnsupportedError, match="5151 states"):
        mphc(10.0, *LOOPS, 100)


@pytest.mark.slow
def test_a_hundred_servers_equal_a_sparse_chain():
    """M/H2/100 equals the same chain written out state by state and solved by sparse LU."""
    rate = 0.85 * 100 / (5 / 9)
    jobs, probability = written_out(rate, *H2, 100, 250, linalg.spsolve)
    means = mphc(rate, *H2, 100)
    assert means.jobs == pytest.approx(jobs, rel=1e-9)
    assert means.waiting_probability == pytest.approx(probability, rel=1e-8)

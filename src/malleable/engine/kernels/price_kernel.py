"""The price kernel: what each job's own best schedule costs when cores have prices.

A job of size x, weight c and arrival a pays c per unit of time until its end C, and l(t) per core and unit
of time, where l is constant in cells [t_b, t_{b+1}). With h(p, l) = max_k p·s(k) − l·k, weak duality for
its work gives

    cost ≥ F(C, p) = c (C − a) + p x − ∫_a^C h(p, l(t)) dt        for every p ≥ 0.

In p, h is convex, so the chords between the points of a grid lie above it, and F with chords in place of h
is still a lower bound. For these chords the kernel finds min_C max_p F exactly. In C, F is linear within a
cell, so a cell's least value is at an end or where h(p, l_b) = c. As C grows the best p falls, so one
pointer into the grid serves for all cells of a job. The search ends where c (C − a) alone exceeds the least
cost found.

∫ h is kept as one row of the grid per edge, H[b, g] = ∫^{t_b} h(p_g, l), in a ring: rows are made as the
search gets there, and overwritten when no job needs them. h itself is homogeneous, h(p, l) = l·G(p/l), and
G is tabulated on a geometric grid that is finer than that of p by a whole factor, so a row takes no
function calls.
"""

from __future__ import annotations

import heapq
import math
from typing import Any

from malleable.engine.unowned_view import unowned_view

FINER = 4
"""Points of G's table for one step of the grid of p."""
# Entries of `about`: of G's table where it starts and its step (logarithms); G, r, dG/dr and k at its end.
START, STEP, LAST_GAIN, LAST_RATIO, FASTEST, WIDEST = range(6)
# Entries of `places`.
FIRST, BUILT, DONE = range(3)
"""The cell of the last arrival, the last row made (−1: none), and jobs done."""


def signature() -> Any:
    """The types of `own_schedules`' arguments."""
    from numba import float64, int64  # noqa: PLC0415 - this module also runs without numba

    f1, i1 = float64[::1], int64[::1]
    return int64(f1, f1, f1, f1, f1, f1, f1, f1, f1, f1, f1, f1, f1, f1, f1, f1, f1, i1)


def make_row(
    edges: Any, prices: Any, logs: Any, grid: Any, gains: Any, rises: Any, about: Any, ring: Any, b: int
) -> None:
    """Make the row of edge b + 1 from that of edge b."""
    count = grid.shape[0]
    rows = ring.shape[0] // count
    length = edges[b + 1] - edges[b]
    price = prices[b]
    # The place of grid[0]/price in G's table, and how far it lies beyond it, between two entries.
    place = (math.log(grid[0]) - logs[b] - about[START]) / about[STEP]
    whole = math.floor(place)
    share = math.expm1(about[STEP] * (place - whole)) / math.expm1(about[STEP])
    phase = int(whole) % FINER
    shift = (int(whole) - phase) // FINER
    columns = gains.shape[0] // FINER
    begin = min(max(-shift, 0), count)
    end = max(min(columns - shift, count), begin)
    old = (b & (rows - 1)) * count
    new = ((b + 1) & (rows - 1)) * count
    from_here = phase * columns + shift
    scale = length * price
    for g in range(begin):
        ring[new + g] = ring[old + g]
    for g in range(begin, end):
        ring[new + g] = ring[old + g] + scale * (gains[from_here + g] + share * rises[from_here + g])
    beyond = scale * (about[LAST_GAIN] - about[FASTEST] * about[LAST_RATIO])
    steep = length * about[FASTEST]
    for g in range(end, count):
        ring[new + g] = ring[old + g] + beyond + steep * grid[g]


def own_schedules(  # noqa: C901, PLR0912, PLR0915 - one function: its arrays are many, and so are the jobs
    times: Any,
    weights: Any,
    sizes: Any,
    own: Any,
    ends: Any,
    values: Any,
    edges: Any,
    prices: Any,
    logs: Any,
    grid: Any,
    gains: Any,
    rises: Any,
    widths: Any,
    about: Any,
    ring: Any,
    base: Any,
    asked: Any,
    places: Any,
) -> int:
    """Go through the jobs from `places[DONE]` on; 1 if the ring is too short for the next one, else 0.

    Of each job it writes what its schedule costs, when that ends, and the p of its end; the core-time that
    it asks for in each cell is added to `asked`, unless that is empty.
    """
    times = unowned_view(times)
    weights = unowned_view(weights)
    sizes = unowned_view(sizes)
    own = unowned_view(own)
    ends = unowned_view(ends)
    values = unowned_view(values)
    edges = unowned_view(edges)
    prices = unowned_view(prices)
    logs = unowned_view(logs)
    grid = unowned_view(grid)
    gains = unowned_view(gains)
    rises = unowned_view(rises)
    widths = unowned_view(widths)
    about = unowned_view(about)
    ring = unowned_view(ring)
    base = unowned_view(base)
    asked = unowned_view(asked)
    points = grid.shape[0]
    rows = ring.shape[0] // points
    mask = rows - 1
    cells = prices.shape[0]
    top = points - 1
    fastest = about[FASTEST]
    first = places[FIRST]
    built = places[BUILT]
    for i in range(places[DONE], times.shape[0]):
        a = times[i]
        c = weights[i]
        x = sizes[i]
        while first < cells and edges[first + 1] <= a:
            first += 1
        if first >= cells:
            own[i] = c * x / fastest
            ends[i] = a + x / fastest
            values[i] = c / fastest
            continue
        if built < first:
            for k in range(points):
                ring[(first & mask) * points + k] = 0.0
            built = first
        if built == first:
            make_row(edges, prices, logs, grid, gains, rises, about, ring, first)
            built = first + 1
        part = (a - edges[first]) / (edges[first + 1] - edges[first])
        # ∫ h up to the arrival: what a row says is less this.
        here = (first & mask) * points
        after = ((first + 1) & mask) * points
        for k in range(points):
            base[k] = ring[here + k] + part * (ring[after + k] - ring[here + k])

        best = grid[top] * x
        best_end = a
        best_p = grid[top]
        b = first
        soonest = a + x / fastest
        while b < cells and edges[b + 1] <= soonest:
            b += 1
        g = top
        full = False
        while True:
            start = max(edges[b], a)
            if c * (start - a) >= best:
                break
            if min(b + 1, cells) - first >= rows:
                full = True
                break
            while built < min(b + 1, cells):
                make_row(edges, prices, logs, grid, gains, rises, about, ring, built)
                built += 1
            here = (b & mask) * points
            if b >= cells:
                # Cores are free from here on: F is flat in C at p = c/s(n).
                p = c / fastest
                if grid[g] > p:
                    while g > 0 and grid[g - 1] >= p:
                        g -= 1
                    low = max(g - 1, 0)
                    share = (p - grid[low]) / (grid[g] - grid[low]) if g > low else 0.0
                    used_low = ring[here + low] - base[low]
                    used_high = ring[here + g] - base[g]
                    value = c * (start - a) + p * x - used_low - share * (used_high - used_low)
                    if value < best:
                        best = value
                        best_p = p
                        done = (used_high - used_low) / (grid[g] - grid[low]) if g > low else x
                        best_end = start + max(x - done, 0.0) / fastest
                break
            after = ((b + 1) & mask) * points
            end = edges[b + 1]
            # Where F(end, p) is greatest: the last p up to which another one makes the job's work worth more.
            high = g
            if high == top:
                low = 0
                while g - low > 0:
                    middle = (low + g) // 2
                    used = ring[after + middle] - base[middle]
                    next_used = ring[after + middle + 1] - base[middle + 1]
                    if x * (grid[middle + 1] - grid[middle]) < next_used - used:
                        g = middle
                    else:
                        low = middle + 1
                used = ring[after + g] - base[g]
            else:
                used = ring[after + g] - base[g]
                while g > 0:
                    less = ring[after + g - 1] - base[g - 1]
                    if x * (grid[g] - grid[g - 1]) >= used - less:
                        break
                    g -= 1
                    used = less
            # h(p, l) for the cell, from whole rows.
            length = end - edges[b]
            if ring[after + g] - ring[here + g] >= c * length:
                value = c * (end - a) + grid[g] * x - used
                if value < best:
                    best = value
                    best_p = grid[g]
                    best_end = end
            elif ring[after + high] - ring[here + high] > c * length:
                low = g
                while ring[after + low + 1] - ring[here + low + 1] < c * length:
                    low += 1
                rate = ring[after + low] - ring[here + low]
                rise = ring[after + low + 1] - ring[here + low + 1] - rate
                share = (c * length - rate) / rise
                p = grid[low] + share * (grid[low + 1] - grid[low])
                used_low = ring[after + low] - base[low]
                used_high = ring[after + low + 1] - base[low + 1]
                value = c * (end - a) + p * x - used_low - share * (used_high - used_low)
                if value < best:
                    best = value
                    best_p = p
                    # Where its work is done: by the end of the cell there is so much in excess.
                    step = grid[low + 1] - grid[low]
                    excess = (used_high - used_low) / step - x
                    speed = rise / (length * step)
                    best_end = max(end - max(excess, 0.0) / speed, start)
            b += 1
        if full:
            places[FIRST] = first
            places[BUILT] = built
            places[DONE] = i
            return 1
        own[i] = best
        ends[i] = best_end
        values[i] = best_p
        if asked.shape[0] > 0:
            b = first
            ratio = math.log(best_p) - about[START]
            last = widths.shape[0] - 1
            until = a
            while b < cells and until < best_end:
                start = until
                until = min(edges[b + 1], best_end)
                place = (ratio - logs[b]) / about[STEP]
                if place >= last:
                    asked[b] += about[WIDEST] * (until - start)
                elif place > 0.0:
                    low = int(place)
                    k = widths[low] + (place - low) * (widths[low + 1] - widths[low])
                    asked[b] += k * (until - start)
                b += 1
    places[FIRST] = first
    places[BUILT] = built
    places[DONE] = times.shape[0]
    return 0


def pooled_signature() -> Any:
    """The types of `pooled_cost`'s arguments."""
    from numba import boolean, float64  # noqa: PLC0415 - this module also runs without numba

    f1 = float64[::1]
    return float64(f1, f1, f1, boolean)


def pooled_cost(times: Any, lengths: Any, weights: Any, alike: bool) -> float:
    """The least cost of jobs of these lengths on one machine that serves one of them at a time, or a bound.

    With weights that are all alike, of the shortest remaining length first, which is best. With others it is
    Goemans' bound: jobs go by weight over length; each counts with its mean busy time and half its length.
    """
    count = times.shape[0]
    remaining = lengths.copy()
    waiting = [(0.0, 0)]
    waiting.pop()
    now = 0.0
    cost = 0.0
    arrived = 0
    while arrived < count or len(waiting) > 0:
        if len(waiting) == 0:
            now = max(now, times[arrived])
        while arrived < count and times[arrived] <= now:
            key = lengths[arrived] if alike else -weights[arrived] / lengths[arrived]
            heapq.heappush(waiting, (key, arrived))
            arrived += 1
        _, j = heapq.heappop(waiting)
        until = now + remaining[j]
        if arrived < count and times[arrived] < until:
            until = times[arrived]
        served = until - now
        if not alike:
            cost += weights[j] * served * (now + 0.5 * served) / lengths[j]
        remaining[j] -= served
        now = until
        if arrived < count and now >= times[arrived] and remaining[j] > 0.0:
            heapq.heappush(waiting, (remaining[j] if alike else -weights[j] / lengths[j], j))
        else:
            cost += weights[j] * ((now if alike else 0.5 * lengths[j]) - times[j])
    return cost

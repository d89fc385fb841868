"""Batch schedulers of rigid jobs, written from their descriptions: the oracle of FCFS and EASY.

They share nothing with `malleable`: jobs are numbers with a width and a run time.
"""

from __future__ import annotations


def fcfs_departures(cores, arrivals, widths, lengths):
    """First come first served: a job starts when all before it have started and its cores are free."""
    running, clock, ends = [], 0.0, []
    for arrival, width, length in zip(arrivals, widths, lengths, strict=True):
        clock = max(clock, arrival)
        running = [(end, k) for end, k in running if end > clock]
        while sum(k for _, k in running) + width > cores:
            clock = min(end for end, _ in running)
            running = [(end, k) for end, k in running if end > clock]
        running.append((clock + length, width))
        ends.append(clock + length)
    return ends


def easy_departures(cores, arrivals, widths, lengths, *, estimates=None):  # noqa: C901 - one scheduler
    """EASY backfilling, event by event, on lists of job numbers; it believes the `estimates`."""
    told = lengths if estimates is None else estimates
    waiting, running, ends, believed, clock = [], [], {}, {}, 0.0
    coming = 0

    def start(j):
        waiting.remove(j)
        running.append(j)
        ends[j], believed[j] = clock + lengths[j], clock + told[j]

    def used():
        return sum(widths[j] for j in running)

    while coming < len(arrivals) or waiting:
        times = [arrivals[coming]] if coming < len(arrivals) else []
        clock = min([*times, *(ends[j] for j in running)])
        running = [j for j in running if ends[j] > clock]
        while coming < len(arrivals) and arrivals[coming] <= clock:
            waiting.append(coming)
            coming += 1
        while waiting and used() + widths[waiting[0]] <= cores:
            start(waiting[0])
        if not waiting:
            continue
        head, free = waiting[0], cores - used()
        # Who has outrun the estimate is believed to end at once.
        for j in sorted(running, key=lambda j: max(believed[j], clock)):
            free += widths[j]
            if free >= widths[head]:
                shadow, extra = max(believed[j], clock), free - widths[head]
                break
        for j in waiting[1:]:
            if used() + widths[j] > cores:
                continue
            if clock + told[j] <= shadow:
                start(j)
            elif widths[j] <= extra:
                extra -= widths[j]
                start(j)
    return [ends[j] for j in range(len(arrivals))]

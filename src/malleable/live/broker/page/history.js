// Numbers over time, as the server keeps them: a sample holds until the next one, the past is thinned out.

const MOST = 1440;
const MOST_OF_A_JOB = 240;

class Track {
  constructor(most, absent) {
    this.most = most;
    this.absent = absent;
    this.times = [];
    this.columns = new Map();
  }

  load(times, columns) {
    this.times = times.slice();
    this.columns = new Map(Object.entries(columns).map(([name, values]) => [name, values.slice()]));
  }

  add(time, values) {
    const last = this.times.length - 1;
    if (last >= 0 && time <= this.times[last]) return;
    for (const name of values.keys()) {
      if (!this.columns.has(name)) this.columns.set(name, this.times.map(() => this.absent));
    }
    this.times.push(time);
    for (const [name, column] of this.columns) column.push(values.get(name) ?? this.absent);
    if (this.times.length > this.most) this.thinOut();
  }

  thinOut() {
    const pairs = Math.floor(this.times.length / 4);
    const { times } = this;
    const shares = [];
    for (let k = 0; k < pairs; k += 1) {
      shares.push((times[2 * k + 1] - times[2 * k]) / (times[2 * k + 2] - times[2 * k]));
    }
    const halved = (values, merged) => values.splice(0, 2 * pairs, ...shares.map(merged));
    for (const column of this.columns.values()) {
      const before = column.slice(0, 2 * pairs);
      halved(column, (share, k) => {
        const [a, b] = [before[2 * k] ?? before[2 * k + 1], before[2 * k + 1] ?? before[2 * k]];
        return a === null ? null : share * a + (1 - share) * b;
      });
    }
    const before = times.slice(0, 2 * pairs);
    halved(times, (_, k) => before[2 * k]);
  }

  values(name) {
    return this.columns.get(name) ?? this.times.map(() => this.absent);
  }

  // The place of the sample that holds at a time; −1 before the first.
  at(time) {
    let low = 0;
    let high = this.times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}

export function coresByClass(jobs) {
  const found = new Map();
  for (const job of jobs) found.set(job.class, (found.get(job.class) ?? 0) + job.granted);
  return found;
}

export class History {
  constructor() {
    this.machine = new Track(MOST, null);
    this.classes = new Track(MOST, 0);
    this.jobs = new Map();
  }

  load(document) {
    const { time, ...columns } = document.machine;
    this.machine.load(time, columns);
    this.classes.load(document.classes.time, document.classes.granted);
    this.jobs.clear();
    for (const [id, job] of Object.entries(document.jobs)) {
      if (job.ended !== null) continue;
      const track = new Track(MOST_OF_A_JOB, null);
      track.load(job.time, { granted: job.granted, progress: job.progress });
      this.jobs.set(id, track);
    }
  }

  add(status) {
    const { time, jobs, cost } = status;
    this.classes.add(time, coresByClass(jobs));
    this.machine.add(time, new Map([
      ["cores", status.cores],
      ["price", status.price],
      ["jobs", status.present],
      ["waiting", status.waiting],
      ["cost", cost?.so_far],
      ["bound", cost?.bound],
    ]));
    const gone = new Set(this.jobs.keys());
    for (const job of jobs) {
      gone.delete(job.id);
      if (!this.jobs.has(job.id)) this.jobs.set(job.id, new Track(MOST_OF_A_JOB, null));
      this.jobs.get(job.id).add(time, new Map([["granted", job.granted], ["progress", job.progress]]));
    }
    for (const id of gone) this.jobs.delete(id);
  }
}

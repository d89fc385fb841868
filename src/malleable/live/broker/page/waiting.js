// Who waits for a core, and for how long, the longest wait first.

import { byId, make, paint, say } from "./dom.js";
import { counted, duration } from "./format.js";

const MOST = 5;

export class Waiting {
  constructor(history, colourOf) {
    this.history = history;
    this.colourOf = colourOf;
    this.place = byId("waiting-list");
  }

  // Returns the longest wait, in seconds; null where no job waits.
  show(jobs, waiting, now) {
    const found = jobs.filter((job) => job.granted === 0).map((job) => [job, this.wait(job, now)]);
    found.sort(([, a], [, b]) => b - a);
    const shown = found.slice(0, MOST);
    byId("waiting").hidden = waiting === 0;
    while (this.place.children.length > shown.length) this.place.lastChild.remove();
    while (this.place.children.length < shown.length) {
      this.place.append(make("li", {}, make("span", { class: "swatch", "aria-hidden": "true" }), make("span", { class: "name" })));
    }
    shown.forEach(([job, seconds], i) => {
      const entry = this.place.children[i];
      paint(entry.firstChild, this.colourOf(job.class));
      const command = job.command ? ` (${job.command.join(" ")})` : "";
      const why = job.state === "paused" ? "paused" : "not started";
      say(entry.lastChild, `${job.id}${command}: ${duration(seconds)}, ${why}`);
    });
    const left = waiting - shown.length;
    byId("waiting-more").hidden = left <= 0;
    say(byId("waiting-more"), `and ${counted(left, "more job")}`);
    return found.length ? found[0][1] : null;
  }

  // A job that was not started has waited since it came, one that is paused since it last had a core.
  wait(job, now) {
    const track = this.history.jobs.get(job.id);
    if (job.state !== "paused" || !track) return job.age;
    const granted = track.values("granted");
    const last = granted.findLastIndex((cores) => cores > 0);
    return last < 0 ? job.age : now - (track.times[last + 1] ?? now);
  }
}

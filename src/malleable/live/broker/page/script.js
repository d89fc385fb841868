// The page: what the broker says, shown. It is loaded once, then the broker sends whatever changes.

import { Access } from "./access.js";
import { byId, make, paint, say, setAttribute } from "./dom.js";
import { Ended } from "./ended.js";
import { clock, counted, duration, number, percent } from "./format.js";
import { coresByClass, History } from "./history.js";
import { JobTable } from "./jobs.js";
import { Speedups } from "./speedups.js";
import { Timeline } from "./timeline.js";
import { Waiting } from "./waiting.js";

const RETRY = [1, 2, 4, 8, 15];
const CHARTS_EVERY = 500;

const history = new History();
const colours = new Map();
const colourOf = (name) => {
  if (!colours.has(name)) colours.set(name, colours.size);
  return colours.get(name);
};
const timeline = new Timeline(history, colourOf);
const speedups = new Speedups(colourOf);
const access = new Access(() => {
  table.allowChanges();
  ended.forget();
  listen();
});
const table = new JobTable(history, colourOf, access);
const waiting = new Waiting(history, colourOf);
const ended = new Ended(access);

let last = null;
let received = 0;
let chartsDrawn = 0;

function take(status) {
  last = status;
  received = performance.now();
  history.add(status);
  for (const { name } of status.classes) if (history.classes.columns.has(name)) colourOf(name);
  show();
}

function show() {
  if (!last || document.hidden) return;
  // Times are those of the broker's clock; while it sends nothing, nothing but the time has changed.
  const passed = connected ? (performance.now() - received) / 1000 : 0;
  const jobs = last.jobs.map((job) => ({ ...job, age: job.age + passed }));
  showMachine(last.uptime + passed);
  showFacts(waiting.show(jobs, last.waiting, last.time + passed));
  showBar();
  table.show(jobs, last.present, last.time + passed);
  if (performance.now() - chartsDrawn < CHARTS_EVERY) return;
  chartsDrawn = performance.now();
  timeline.draw(last.time + passed);
  speedups.show(last.classes);
  ended.show(last.ended);
}

function showMachine(uptime) {
  const state = last.draining ? ", draining: takes no new jobs" : "";
  say(byId("machine"), `${counted(last.cores, "core")} by ${last.policy}, up ${duration(uptime)}${state}`);
  document.title = `${counted(last.present, "job")}, malleable`;
  if (last.problem) notice(`The policy cannot decide, cores are divided equally: ${last.problem}`, "problem");
  else clearNotice("problem");
}

function showFacts(longest) {
  const { so_far: soFar, bound, saved, compared, jobs: came } = last.cost;
  say(byId("fact-cores"), `${number(last.granted, 7)} of ${number(last.cores, 7)}`);
  say(byId("more-cores"), last.granted < last.cores ? `${number(last.cores - last.granted, 7)} free` : "none free");
  say(byId("fact-jobs"), number(last.present, 7));
  const counts = Object.entries(last.ended).filter(([, count]) => count).map(([how, count]) => `${count} ${how}`);
  const wait = longest === null ? "" : ` up to ${duration(longest)}`;
  say(byId("more-jobs"), [last.waiting ? `${number(last.waiting, 7)} waiting${wait}` : "none waiting", ...counts].join(", "));
  say(byId("fact-price"), number(last.price));
  say(byId("more-price"), last.price === null ? "none now" : "WHAM's index, not a saving");
  say(byId("fact-cost"), number(soFar));
  const above = bound ? `${percent(soFar / bound - 1)} above the bound ${number(bound)}` : "bound not known yet";
  const shared = saved === null || compared < 10 ? "" : `${percent(Math.abs(saved))} ${saved < 0 ? "more" : "less"} than equal sharing`;
  say(byId("more-cost"), came ? [shared, above].filter(Boolean).join(", ") : "no job yet");
  setAttribute(byId("more-cost"), "title", shared && `over ${counted(compared, "job")}`);
}

function showBar() {
  const bar = byId("bar");
  const running = last.jobs.filter((job) => job.granted > 0);
  running.sort((a, b) => colourOf(a.class) - colourOf(b.class));
  while (bar.children.length > running.length + 1) bar.lastChild.remove();
  while (bar.children.length < running.length + 1) bar.append(make("span", {}, make("span", { class: "name" })));
  running.forEach((job, i) => fillPiece(bar.children[i], job.granted, `${job.id}: ${counted(job.granted, "core")}`, job));
  const free = Math.max(last.cores - last.granted, 0);
  fillPiece(bar.children[running.length], free, `${counted(free, "core")} free`, null);
  bar.classList.toggle("many", running.length > 24);
  const byClass = coresByClass(last.jobs);
  const said = [...byClass].map(([name, cores]) => `${name} has ${cores}`);
  setAttribute(bar, "aria-label", `Of ${counted(last.cores, "core")}, ${[...said, `${free} are free`].join(", ")}`);
  showLegend(byClass, free);
}

function fillPiece(piece, cores, title, job) {
  piece.style.flexGrow = cores;
  piece.hidden = cores === 0;
  setAttribute(piece, "title", title);
  piece.className = job ? "piece" : "piece free";
  if (job) paint(piece, colourOf(job.class));
  else piece.removeAttribute("data-colour");
  say(piece.firstChild, job ? `${job.id} · ${counted(cores, "core")}` : cores ? `${cores} free` : "");
}

function showLegend(byClass, free) {
  const counts = new Map();
  for (const job of last.jobs) counts.set(job.class, (counts.get(job.class) ?? 0) + 1);
  const entries = [...byClass].sort(([a], [b]) => colourOf(a) - colourOf(b));
  const legend = byId("legend");
  while (legend.children.length > entries.length) legend.lastChild.remove();
  while (legend.children.length < entries.length) {
    legend.append(make("li", {}, make("span", { class: "swatch", "aria-hidden": "true" }), make("span", { class: "name" })));
  }
  entries.forEach(([name, cores], i) => {
    const entry = legend.children[i];
    paint(entry.firstChild, colourOf(name));
    say(entry.lastChild, `${name}: ${counted(cores, "core")}, ${counted(counts.get(name), "job")}`);
  });
  legend.hidden = entries.length === 0;
}

// Notices, the gravest of which is shown.

const notices = new Map();

function notice(text, kind) {
  notices.set(kind, text);
  showNotices();
}

function clearNotice(kind) {
  if (notices.delete(kind)) showNotices();
}

function showNotices() {
  const text = notices.get("gone") ?? notices.get("problem") ?? "";
  byId("notice").hidden = text === "";
  say(byId("notice"), text);
}

// The connection: load everything, then listen; if that fails, again after a while.

let connected = false;
let failures = 0;
let stream = null;

function setConnection(state, text) {
  connected = state === "live";
  setAttribute(byId("connection"), "data-state", state);
  say(byId("connection"), text);
  document.body.classList.toggle("stale", state === "gone");
}

async function read(path) {
  const answer = await access.read(path);
  if (!answer?.ok) throw new Error(`${path}: ${answer?.status}`);
  return answer.json();
}

async function connect() {
  try {
    const [past, status] = await Promise.all([read("v1/history"), read("v1/status")]);
    history.load(past);
    take(status);
    listen();
  } catch {
    lose();
  }
}

// Not an EventSource, which cannot show the token: without it the broker does not say what programs are.
async function listen() {
  stream?.abort();
  const own = stream = new AbortController();
  try {
    const answer = await access.read("v1/events?most=200", own.signal);
    if (!answer?.ok) throw new Error("no stream");
    live();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Error("the stream has ended");
      const lines = (text + value).split("\n");
      text = lines.pop();
      for (const line of lines) if (line.startsWith("data: ")) hear(JSON.parse(line.slice(6)));
    }
  } catch {
    if (own === stream) lose();
  }
}

function hear(status) {
  live();
  take(status);
}

function live() {
  failures = 0;
  clearNotice("gone");
  setConnection("live", "live");
}

function lose() {
  stream?.abort();
  stream = null;
  setConnection("gone", "not connected");
  const since = last ? ` What is shown is of ${clock(last.time, true)}.` : "";
  notice(`The broker does not answer; trying again.${since} Running jobs keep their cores.`, "gone");
  setTimeout(connect, 1000 * RETRY[Math.min(failures, RETRY.length - 1)]);
  failures += 1;
}

setInterval(show, 1000);
document.addEventListener("visibilitychange", show);
connect();

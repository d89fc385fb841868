// The page: what the broker says, shown. It is loaded once, then the broker sends whatever changes.

import { Access } from "./access.js";
import { byId, make, paint, say, setAttribute } from "./dom.js";
import { clock, counted, duration, number, percent } from "./format.js";
import { coresByClass, History } from "./history.js";
import { JobTable } from "./jobs.js";
import { Speedups } from "./speedups.js";
import { Timeline } from "./timeline.js";

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
const access = new Access(() => table.allowChanges());
const table = new JobTable(history, colourOf, access);

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
  showFacts();
  showBar();
  table.show(jobs, last.present, last.time + passed);
  if (performance.now() - chartsDrawn < CHARTS_EVERY) return;
  chartsDrawn = performance.now();
  timeline.draw(last.time + passed);
  speedups.show(last.classes, new Set(history.classes.columns.keys()));
}

function showMachine(uptime) {
  const state = last.draining ? ", draining: takes no new jobs" : "";
  say(byId("machine"), `${counted(last.cores, "core")} by ${last.policy}, up ${duration(uptime)}${state}`);
  document.title = `${counted(last.present, "job")}, malleable`;
  if (last.problem) notice(`The policy cannot decide, cores are divided equally: ${last.problem}`, "problem");
  else clearNotice("problem");
}

function showFacts() {
  const { so_far: soFar, bound, jobs: came } = last.cost;
  say(byId("fact-cores"), `${number(last.granted, 7)} of ${number(last.cores, 7)}`);
  say(byId("more-cores"), last.granted < last.cores ? `${number(last.cores - last.granted, 7)} free` : "none free");
  say(byId("fact-jobs"), number(last.present, 7));
  const ended = Object.entries(last.ended).filter(([, count]) => count).map(([how, count]) => `${count} ${how}`);
  say(byId("more-jobs"), [last.waiting ? `${number(last.waiting, 7)} waiting` : "none waiting", ...ended].join(", "));
  say(byId("fact-price"), number(last.price));
  say(byId("more-price"), last.price === null ? "none now" : "the index that divides the cores");
  say(byId("fact-cost"), number(soFar));
  const above = bound ? `${percent(soFar / bound - 1)} above the bound ${number(bound)}` : "bound not known yet";
  say(byId("more-cost"), came ? above : "no job yet");
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
let events = null;

function setConnection(state, text) {
  connected = state === "live";
  setAttribute(byId("connection"), "data-state", state);
  say(byId("connection"), text);
  document.body.classList.toggle("stale", state === "gone");
}

async function read(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" }, cache: "no-store" });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
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

function listen() {
  events?.close();
  events = new EventSource("v1/events?most=200");
  const hear = (event) => {
    live();
    take(JSON.parse(event.data));
  };
  events.addEventListener("open", live);
  events.addEventListener("status", hear);
  events.addEventListener("message", hear);
  events.addEventListener("error", lose);
}

function live() {
  failures = 0;
  clearNotice("gone");
  setConnection("live", "live");
}

function lose() {
  events?.close();
  events = null;
  setConnection("gone", "not connected");
  const since = last ? ` What is shown is of ${clock(last.time, true)}.` : "";
  notice(`The broker does not answer; trying again.${since} Running jobs keep their cores.`, "gone");
  setTimeout(connect, 1000 * RETRY[Math.min(failures, RETRY.length - 1)]);
  failures += 1;
}

setInterval(show, 1000);
document.addEventListener("visibilitychange", show);
connect();

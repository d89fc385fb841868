// What all charts share: scales, ticks, axes, and lines that are steps.

import { draw } from "./dom.js";

// A plain area to draw in, as wide as its place and of one pixel per unit, so that text keeps its size.
export function canvas(svg, height, margin) {
  const width = Math.max(svg.clientWidth || svg.parentElement.clientWidth, 120);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.height = `${height}px`;
  return {
    left: margin.left,
    right: width - margin.right,
    top: margin.top,
    bottom: height - margin.bottom,
  };
}

export function linear(from, to, low, high) {
  const factor = to > from ? (high - low) / (to - from) : 0;
  return (value) => low + (value - from) * factor;
}

export function logarithmic(from, to, low, high) {
  const inner = linear(Math.log2(from), Math.log2(to), low, high);
  return (value) => inner(Math.log2(value));
}

// Round numbers from 0 up to at least `most`, about `count` of them.
export function ticks(most, count, whole = false) {
  if (!(most > 0)) return [0, 1];
  const raw = most / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  let step = power * [1, 2, 5, 10].find((m) => m * power >= raw * (1 - 1e-9));
  if (whole) step = Math.max(Math.round(step), 1);
  const found = [];
  for (let k = 0; k * step < most * (1 + 1e-9) + step * (1 - 1e-9); k += 1) found.push(k * step);
  return found;
}

// Marks for numbers of cores: quarters of all where these are whole.
export function coreTicks(most) {
  if (most % 4 === 0) return [0, 1, 2, 3, 4].map((k) => (k * most) / 4);
  return ticks(most, 3, true).filter((value) => value <= most);
}

const TIME_STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800,
];

// Round times of the clock on the wall between two times.
export function timeTicks(from, to, count) {
  const step = TIME_STEPS.find((size) => (to - from) / size <= count) ?? 86400 * Math.ceil((to - from) / count / 86400);
  const zone = new Date(from * 1000).getTimezoneOffset() * 60;
  const found = [];
  for (let time = Math.ceil((from - zone) / step) * step + zone; time <= to; time += step) found.push(time);
  return { step, times: found };
}

export function yAxis(area, y, values, shown) {
  return values.flatMap((value) => [
    draw("line", { class: "grid", x1: area.left, x2: area.right, y1: y(value), y2: y(value) }),
    draw("text", { class: "tick", x: area.left - 6, y: y(value), dy: "0.32em", "text-anchor": "end", text: shown(value) }),
  ]);
}

export function xAxis(area, x, values, shown) {
  return values.map((value) => {
    const place = x(value);
    const anchor = place < area.left + 16 ? "start" : place > area.right - 16 ? "end" : "middle";
    return draw("text", { class: "tick", x: place, y: area.bottom + 16, "text-anchor": anchor, text: shown(value) });
  });
}

const point = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;

// A line of steps from each time to the next, broken where a number is not known.
export function steps(times, values, end, x, y) {
  let path = "";
  let open = false;
  times.forEach((time, i) => {
    const value = values[i];
    if (value === null) {
      open = false;
      return;
    }
    path += `${open ? "L" : "M"}${point(x(time), y(value))}L${point(x(times[i + 1] ?? end), y(value))}`;
    open = true;
  });
  return path;
}

// The area between two such lines, in pieces where it has no height for a while.
export function band(times, low, high, end, x, y) {
  let path = "";
  let there = "";
  let back = "";
  const close = () => {
    if (there) path += `M${there}${back}Z`;
    there = back = "";
  };
  times.forEach((time, i) => {
    if (!(high[i] > low[i])) {
      close();
      return;
    }
    const [from, to] = [x(time), x(times[i + 1] ?? end)];
    there += `${there ? "L" : ""}${point(from, y(high[i]))}L${point(to, y(high[i]))}`;
    back = `L${point(to, y(low[i]))}L${point(from, y(low[i]))}${back}`;
  });
  close();
  return path;
}

// A small chart per class: the speedup as it is believed, and the points that it was learned from.

import { canvas, logarithmic, yAxis, xAxis } from "./charts.js";
import { byId, draw, make, paint, say, setAttribute } from "./dom.js";
import { counted, number } from "./format.js";

const HEIGHT = 170;
const MARGIN = { left: 34, right: 12, top: 10, bottom: 22 };

// Powers of two, few enough to be read.
function doublings(most) {
  const found = [];
  for (let k = 1; k <= most * (1 + 1e-9); k *= 2) found.push(k);
  const every = Math.ceil(found.length / 6);
  return found.filter((_, i) => i % every === 0);
}

export class Speedups {
  constructor(colourOf) {
    this.place = byId("speedups");
    this.colourOf = colourOf;
    this.figures = new Map();
    this.drawn = "";
    new ResizeObserver(() => this.redraw()).observe(this.place);
  }

  // Only classes of which something was observed: the other curves say nothing that was not given.
  show(classes) {
    const those = classes.filter((one) => one.points.length);
    byId("learned").hidden = those.length === 0;
    const text = JSON.stringify(those);
    if (text === this.drawn) return;
    this.drawn = text;
    this.classes = those;
    for (const [name, figure] of this.figures) {
      if (!those.some((one) => one.name === name)) {
        figure.root.remove();
        this.figures.delete(name);
      }
    }
    for (const one of those) {
      if (!this.figures.has(one.name)) this.add(one.name);
    }
    this.redraw();
  }

  add(name) {
    const caption = make("figcaption");
    const swatch = make("span", { class: "swatch", "aria-hidden": "true" });
    paint(swatch, this.colourOf(name));
    const said = make("span", { class: "quiet" });
    caption.append(swatch, make("span", { class: "name", text: name }), " ", said);
    const svg = draw("svg", { role: "img" });
    const root = make("figure", {}, caption, svg);
    this.place.append(root);
    this.figures.set(name, { root, svg, said });
  }

  redraw() {
    for (const one of this.classes ?? []) this.draw(one, this.figures.get(one.name));
  }

  draw({ name, speedup, points }, { svg, said }) {
    const area = canvas(svg, HEIGHT, MARGIN);
    const most = Math.max(2, speedup.cores.at(-1), ...points.map((point) => point.cores));
    const high = Math.max(2, ...speedup.values, ...points.map((point) => point.speedup)) * 1.1;
    const x = logarithmic(1, most, area.left, area.right);
    const y = logarithmic(1, high, area.bottom, area.top);
    const clipped = points.filter((point) => point.speedup > 0);
    const path = speedup.cores.map((k, i) => `${i ? "L" : "M"}${x(k)} ${y(Math.max(speedup.values[i], 1e-9))}`);
    const end = Math.min(most, high);
    const line = draw("path", { class: "speedup", d: path.join("") });
    paint(line, this.colourOf(name));
    const dots = clipped.map((point) => {
      const dot = draw("circle", { class: "dot", cx: x(point.cores), cy: Math.min(y(point.speedup), area.bottom + 4), r: 4 });
      paint(dot, this.colourOf(name));
      return dot;
    });
    svg.replaceChildren(
      ...yAxis(area, y, doublings(high), number),
      ...xAxis(area, x, doublings(most), number),
      draw("line", { class: "ideal", x1: x(1), y1: y(1), x2: x(end), y2: y(end) }),
      line,
      ...dots,
    );
    const widest = `${number(speedup.values.at(-1))}× on ${counted(speedup.cores.at(-1), "core")}`;
    say(said, `${widest}, learned at ${counted(points.length, "width")}`);
    const seen = points.map((point) => `${number(point.speedup)} on ${point.cores}`).join(", ");
    setAttribute(svg, "aria-label", `Speedup of ${name}: ${widest}; observed ${seen}`);
  }
}

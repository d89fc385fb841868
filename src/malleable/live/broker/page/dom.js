// Elements. All text goes in as text: names of jobs and classes come from anyone.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children);
  return element;
}

export function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function draw(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

export const byId = (id) => document.getElementById(id);

// Change a text only if it is another one, so that a selection or a screen reader is not disturbed.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

// Classes are told apart by colour, and beyond eight of them by stripes as well.
const COLOURS = 8;

export function paint(element, index) {
  const striped = Math.floor(index / COLOURS) % 2 === 1;
  setAttribute(element, "data-colour", index % COLOURS);
  setAttribute(element, "data-striped", striped);
  if (striped && element.localName === "path") setAttribute(element, "fill", stripes(index % COLOURS));
}

// The stripes of a colour in drawings, which are drawn once.
function stripes(colour) {
  const id = `stripes-${colour}`;
  if (!byId(id)) {
    const pattern = draw("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      draw("rect", { class: "stripe", width: 6, height: 6 }), draw("rect", { class: "shade", width: 3, height: 6 }));
    setAttribute(pattern, "data-colour", colour);
    document.body.append(draw("svg", { class: "patterns", width: 0, height: 0, "aria-hidden": "true" }, pattern));
  }
  return `url(#${id})`;
}

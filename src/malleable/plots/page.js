// Draws the plots of the page; tests look at window.malleablePlots to see how many are drawn.
(() => {
  "use strict";
  const NARROW = 640;
  const boxes = [...document.querySelectorAll(".plot")];
  const state = window.malleablePlots = { drawn: 0, failed: 0, total: boxes.length };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const touch = matchMedia("(pointer: coarse)");
  const waiting = new Set(boxes);
  const shown = new Map();

  // Settings of `layout` for a box as wide as this one, by the names that relayout knows.
  function settings(box, layout) {
    const ink = dark.matches ? "#d5dade" : "#333a41", line = dark.matches ? "#3c444c" : "#dfe3e7";
    const made = { ...layout.meta[box.clientWidth < NARROW ? "narrow" : "wide"], "font.color": ink };
    for (const name of Object.keys(layout)) {
      if (/^[xy]axis/.test(name)) Object.assign(made, { [name + ".gridcolor"]: line, [name + ".linecolor"]: ink, [name + ".tickcolor"]: ink });
    }
    return made;
  }

  function put(layout, path, value) {
    const parts = path.split("."), last = parts.pop();
    let inner = layout;
    for (const part of parts) inner = inner[part] ??= {};
    inner[last] = value;
  }

  function draw(box) {
    if (!waiting.delete(box)) return;
    const { data, layout } = JSON.parse(document.getElementById("drawing-" + box.dataset.figure).textContent);
    for (const [path, value] of Object.entries(settings(box, layout))) put(layout, path, value);
    // A finger that passes over a plot is to scroll the page.
    layout.dragmode = touch.matches ? false : "zoom";
    shown.set(box, layout.meta);
    Plotly.newPlot(box, data, layout, { responsive: true, displayModeBar: false, displaylogo: false })
      .then(() => { state.drawn += 1; })
      .catch((error) => {
        state.failed += 1;
        box.innerHTML = '<p class="broken">This plot cannot be drawn; the files below show it.</p>';
        console.error(box.dataset.figure, error);
      });
  }

  function again() {
    for (const box of shown.keys()) if (box.layout) Plotly.relayout(box, settings(box, box.layout));
  }

  // What is in sight first, the rest when there is nothing else to do.
  const sight = new IntersectionObserver((seen) => {
    for (const one of seen) if (one.isIntersecting) draw(one.target);
  }, { rootMargin: "400px" });
  boxes.forEach((box) => sight.observe(box));
  const later = window.requestIdleCallback ?? ((work) => setTimeout(work, 30));
  const next = () => {
    const [box] = waiting;
    if (box) { draw(box); later(next); }
  };
  later(next);

  let pause;
  addEventListener("resize", () => { clearTimeout(pause); pause = setTimeout(again, 150); });
  dark.addEventListener("change", again);
  // On a phone the contents start folded.
  if (matchMedia("(max-width: 1099px)").matches) document.querySelector("nav details").open = false;
})();

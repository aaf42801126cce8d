/** Small charts of the last two minutes: lines over time, with the value under the pointer. */

import { make, makeSvg, set, write } from "./elements.js";

export const SECONDS = 120;
const WIDTH = 300;
const HEIGHT = 72;

/** @typedef {{ name: string, value: (sample: any) => number | null }} Series */

export class Chart {
  #series;
  #format;
  #svg = makeSvg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  #lines;
  #areas;
  #cursor = makeSvg("line", { class: "cursor", y1: 0, y2: HEIGHT });
  #top = make("span", { class: "scale" });
  #legend = make("ul", { class: "series" });
  /** @type {any[]} */
  #samples = [];
  /** @type {number | null} */
  #pointed = null;

  /** @param {string} title @param {string} hint @param {Series[]} series @param {(value: number | null) => string} format */
  constructor(title, hint, series, format) {
    this.#series = series;
    this.#format = format;
    this.#areas = series.map((_, index) => makeSvg("path", { class: `area series-${index}` }));
    this.#lines = series.map((_, index) => makeSvg("path", { class: `line series-${index}` }));
    this.#svg.append(...this.#areas, ...this.#lines, this.#cursor);
    const entries = series.map(({ name }, index) => make("li", { class: `series-${index}` }, `${name} `, make("b")));
    this.#legend.append(...entries);
    const plot = make("div", { class: "plot" }, this.#svg, this.#top);
    plot.addEventListener("pointermove", (event) => this.#point(event.offsetX / plot.clientWidth));
    plot.addEventListener("pointerleave", () => this.#point(null));
    this.card = make("section", { class: "card chart" }, make("h2", {}, title), make("p", { class: "hint" }, hint), plot, this.#legend);
  }

  /** @param {any[]} samples oldest first @param {number} now */
  show(samples, now) {
    this.#samples = samples.filter((sample) => sample.at > now - SECONDS).map((sample) => ({ ...sample, x: 1 - (now - sample.at) / SECONDS }));
    const values = this.#samples.flatMap((sample) => this.#series.map(({ value }) => value(sample) ?? 0));
    const top = niceCeiling(Math.max(...values, 0));
    this.#series.forEach(({ value }, index) => {
      const runs = runsOf(this.#samples, value, top);
      set(this.#lines[index], { d: runs.map((run) => `M${run.join("L")}`).join("") });
      set(this.#areas[index], { d: runs.map(areaUnder).join("") });
    });
    write(this.#top, top ? this.#format(top) : "");
    this.#tell();
  }

  /** @param {number | null} share */
  #point(share) {
    this.#pointed = share;
    this.#tell();
  }

  /** The values at the pointer, or the latest. */
  #tell() {
    const at = this.#pointed;
    const near = (best, one) => (Math.abs(one.x - at) < Math.abs(best.x - at) ? one : best);
    const sample = at === null || !this.#samples.length ? this.#samples.at(-1) : this.#samples.reduce(near);
    this.#series.forEach(({ value }, index) => {
      // Without a pointer the latest that was measured, as the tiles tell it: a second without deliveries has no latency.
      const told = at === null ? (this.#samples.findLast((one) => value(one) !== null) ?? sample) : sample;
      write(this.#legend.children[index].lastChild, this.#format(told ? value(told) : null));
    });
    const x = at === null || !sample ? -10 : sample.x * WIDTH;
    set(this.#cursor, { x1: x, x2: x });
  }
}

/** @param {any[]} samples @param {(sample: any) => number | null} value @param {number} top @returns {string[][]} */
function runsOf(samples, value, top) {
  const runs = [];
  let run = null;
  for (const sample of samples) {
    const found = value(sample);
    if (found === null) run = null;
    else {
      if (!run) runs.push((run = []));
      run.push(`${(sample.x * WIDTH).toFixed(1)} ${(HEIGHT - 2 - (top ? found / top : 0) * (HEIGHT - 6)).toFixed(1)}`);
    }
  }
  // A value alone is a dot, and a line of no length shows as one.
  return runs.map((points) => (points.length === 1 ? [points[0], points[0]] : points));
}

/** @param {string[]} run */
function areaUnder(run) {
  const [first, last] = [run[0], run.at(-1)].map((point) => point.split(" ")[0]);
  return `M${first} ${HEIGHT}L${run.join("L")}L${last} ${HEIGHT}z`;
}

/** @param {number} number @returns {number} 1, 2 or 5 times a power of ten, not below it */
export function niceCeiling(number) {
  if (number <= 0) return 0;
  const power = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 5, 10].find((factor) => factor * power >= number * 0.999999) * power;
}

/** The numbers on top. */

import { element, keyed, make, set, write } from "./elements.js";
import { count, duration, rate } from "./format.js";

/** @type {Map<string, { value: string, note: string, mood: string }>} */
const shown = new Map(
  ["Members", "Delivered per second", "Published per second", "Latency p50", "Latency p99", "Held", "Faults"].map((name) => [
    name,
    { value: "–", note: "", mood: "calm" },
  ]),
);

/** @param {string} name @param {string} value @param {string} [note] @param {string} [mood] */
function put(name, value, note = "", mood = "calm") {
  shown.set(name, { value, note, mood });
}

/** @param {import("./cube.js").Member[]} members */
export function tellMembers(members) {
  const here = members.filter((member) => ["self", "alive"].includes(member.state)).length;
  const lost = members.filter((member) => ["suspected", "disconnected"].includes(member.state)).length;
  const value = lost ? `${count(here)} of ${count(here + lost)}` : count(here);
  put("Members", value, lost ? `${lost} not reachable` : "all reachable", lost ? "bad" : "calm");
  draw();
}

/** @param {any} sample the latest @param {any} latency @param {any} stability the latest that there were, if any */
export function tellRates(sample, latency, stability) {
  put("Delivered per second", rate(sample?.delivered ?? 0), "at this node");
  put("Published per second", rate(sample?.published ?? 0), "at this node");
  const shown = latency ?? stability ?? { p50: null, p99: null };
  const note = latency || !stability ? "publication to delivery" : "publication to stability";
  put("Latency p50", duration(shown.p50), note);
  put("Latency p99", duration(shown.p99), note);
  draw();
}

/** @param {number} held @param {number} oldest */
export function tellHeld(held, oldest) {
  put("Held", count(held), held ? `oldest for ${duration(oldest)}` : "nothing waits", held ? "warn" : "calm");
  draw();
}

/** @param {number} faults */
export function tellFaults(faults) {
  put("Faults", count(faults), "since the node began", faults ? "warn" : "calm");
  draw();
}

const MOODS = { VALID: "calm", VIOLATED: "bad", UNKNOWN: "warn" };

/** @param {any} verdict what was last said about this node's journal, if anything @param {number} [now] seconds */
export function tellVerdict(verdict, now = Date.now() / 1000) {
  if (!verdict) shown.delete("Verdict");
  else {
    const age = `${duration(Math.max(0, now - verdict.at))} ago`;
    put("Verdict", verdict.verdict, verdict.because ? `${verdict.because}, ${age}` : age, MOODS[verdict.verdict]);
  }
  draw();
}

function draw() {
  const create = ([name]) => make("div", {}, make("dt", {}, name), make("dd"), make("dd", { class: "hint" }));
  keyed(element("tiles"), [...shown], ([name]) => name, create, (tile, [, { value, note, mood }]) => {
    set(tile, { "data-mood": mood });
    write(tile.children[1], value);
    write(tile.children[2], note);
  });
}

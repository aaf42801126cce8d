/** What happened to members, links and clients, newest first. */

import { element, keyed, make, set, write } from "./elements.js";
import { count, plural, time } from "./format.js";

const WORDS = {
  connected: "link up",
  disconnected: "link lost",
  left: "left",
  suspected: "held faulty",
  reincarnated: "came back as a new incarnation",
  gap: "gap",
  refused: "caller refused",
  early: "caller came before the node was ready",
  "refused-frame": "frame refused",
  "client-cut": "client cut off",
};
const CALM = ["connected", "left", "early"];
const GRAVE = ["suspected", "gap", "refused-frame"];
const MOST_SHOWN = 60;

/** @param {any} event */
const gravity = (event) => (CALM.includes(event.kind) ? "calm" : GRAVE.includes(event.kind) ? "grave" : "notable");

/** @param {any} said what `/api/faults.json` says */
export function showFaults(said) {
  const serious = Object.entries(said.counts).filter(([kind]) => !CALM.includes(kind));
  const total = serious.reduce((sum, [, times]) => sum + times, 0);
  write(element("fault-count"), total ? `${plural(total, "fault")} since this node began` : "no faults so far");
  const create = () => make("li", {}, make("time"), make("b"), make("span"));
  const events = said.events.slice(0, MOST_SHOWN);
  keyed(element("faults"), events, (event) => `${event.at} ${event.kind} ${event.node} ${event.topic}`, create, (row, event) => {
    set(row, { "data-kind": event.kind, "data-gravity": gravity(event) });
    if (event.node !== null) set(row, { "data-node": event.node });
    set(row.children[0], { datetime: new Date(event.at * 1000).toISOString() });
    write(row.children[0], time(event.at));
    const who = event.node === null ? "" : `node ${event.node} `;
    const where = event.topic === null ? "" : ` in ${event.topic}`;
    const often = event.count > 1 ? ` ×${count(event.count)}` : "";
    write(row.children[1], `${who}${WORDS[event.kind] ?? event.kind}${where}${often}`);
    write(row.children[2], event.detail ?? "");
  });
  return total;
}

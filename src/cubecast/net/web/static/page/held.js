/** What is held, and the chain of what it waits for. */

import { element, keyed, make, set, write } from "./elements.js";
import { count, duration, messageName, plural } from "./format.js";

const MOST_SHOWN = 30;

/** @param {any} said what `/api/held.json` says */
export function showHeld(said) {
  const back = Object.entries(said.held_back);
  const words = said.held_in_all ? `${plural(said.held_in_all, "message")} waiting for a cause` : "nothing waits for a cause";
  write(element("held-count"), words);
  const items = [
    ...said.held.slice(0, MOST_SHOWN).map((one) => ({ key: `${one.topic} ${one.message.join(".")}`, one })),
    ...back.map(([topic, waiting]) => ({ key: `back ${topic}`, topic, waiting })),
  ];
  const create = () => make("li", {}, make("p", { class: "what" }), make("ol", { class: "chain" }), make("p", { class: "hint" }));
  keyed(element("held"), items, (item) => item.key, create, (row, item) => {
    if (item.one) updateHeld(row, item.one);
    else updateBack(row, item.topic, item.waiting);
  });
}

/** @param {any} row @param {string} topic @param {number} waiting */
function updateBack(row, topic, waiting) {
  set(row, { "data-kind": "back" });
  write(row.children[0], `${topic}: ${plural(waiting, "publication")} held back`);
  write(row.children[2], "A subscriber here reads slowly; its publishers wait.");
}

/** @param {any} row @param {any} one */
function updateHeld(row, one) {
  const missing = one.chain?.at(-1);
  set(row, { "data-kind": "held", "data-topic": one.topic, "data-message": one.message.join(".") });
  const some = one.messages > 1 ? ` and ${count(one.messages - 1)} more` : "";
  write(row.children[0], `${one.topic}: ${messageName(one.message)}${some}, held for ${duration(one.for)}`);
  const chain = [{ message: one.message, state: "held" }, ...(one.chain ?? [{ message: one.waits_for, state: "missing" }])];
  const create = () => make("li", {}, make("b", { class: "mono" }), make("span"));
  keyed(row.children[1], chain, (link) => link.message.join("."), create, (item, link) => {
    set(item, { "data-state": link.state });
    write(item.children[0], messageName(link.message));
    write(item.children[1], link.state === "missing" ? missingWords(link) : "held here");
  });
  write(row.children[2], missing?.next ?? "");
}

/** @param {any} link */
function missingWords(link) {
  if (link.source_state === undefined) return "missing";
  const where = link.via === undefined || link.via === null ? "" : `, expected from node ${link.via}`;
  return `missing; node ${link.source} is ${link.source_state}${link.connected ? "" : ", not connected"}${where}`;
}

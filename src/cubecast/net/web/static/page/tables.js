/** Members and topics as tables. */

import { stateName } from "./cube.js";
import { element, keyed, make, set, write } from "./elements.js";
import { count, plural, rate, size, time } from "./format.js";
import { shortId } from "./ids.js";

/** @param {import("./cube.js").Member[]} members */
export function showMembers(members) {
  const create = () => make("tr", {}, make("td"), make("td"), make("td"), make("td", { class: "mono" }), make("td", { class: "number" }));
  keyed(element("members"), members, (member) => String(member.node), create, (row, member) => {
    set(row, { "data-state": member.state });
    const cells = [
      member.incarnation ? `${member.node} (incarnation ${member.incarnation})` : member.node,
      stateName(member.state),
      time(member.since),
      member.address,
      size(member.queued),
    ];
    cells.forEach((cell, index) => write(row.children[index], cell));
  });
}

/** @param {any[]} topics @param {number} inAll @param {(topic: string) => void} choose */
export function showTopics(topics, inAll, choose) {
  write(element("topic-count"), inAll ? plural(inAll, "topic") : "nobody has published or subscribed yet");
  const shown = topics.slice(0, 100);
  keyed(element("topics"), shown, (one) => one.topic, (one) => topicRow(one, choose), (row, one) => updateTopic(row, one));
}

/** @param {any} one @param {(topic: string) => void} choose */
function topicRow(one, choose) {
  const name = make("button", { type: "button", class: "link mono", title: `${one.topic}: show its tree` }, one.topic);
  name.addEventListener("click", () => choose(one.topic));
  const bar = make("span", { class: "bar", role: "meter", "aria-label": "window", "aria-valuemin": 0 }, make("span"));
  const numbers = Array.from({ length: 4 }, () => make("td", { class: "number" }));
  return make("tr", {}, make("td", {}, name), make("td"), ...numbers, make("td", {}, bar), make("td", { class: "number" }));
}

/** @param {any} row @param {any} one */
function updateTopic(row, one) {
  const many = one.members.length > 8;
  const members = many ? `${one.members.slice(0, 6).join(" ")} … (${one.members.length})` : one.members.join(" ") || "–";
  write(row.children[1], members);
  [rate(one.publish_rate), rate(one.deliver_rate), count(one.delivered), count(one.unstable)].forEach((text, index) => {
    write(row.children[2 + index], text);
  });
  const { used, size: room } = one.window;
  const bar = row.children[6].firstChild;
  set(bar, { "aria-valuenow": used, "aria-valuemax": room, title: `${used} of ${room} publications under way` });
  bar.firstChild.style.width = `${room ? (100 * used) / room : 0}%`;
  write(row.children[7], count(one.lag + one.held_back));
}

/** @param {any[]} streams @param {(topic: string, publisher: import("./ids.js").Id) => void} choose */
export function showStreams(streams, choose) {
  element("streams-card").hidden = !streams.length;
  write(element("stream-count"), plural(streams.length, "stream"));
  const key = (one) => `${one.topic} ${one.publisher} ${one.incarnation}`;
  keyed(element("streams"), streams.slice(0, 100), key, (one) => streamRow(one, choose), updateStream);
}

/** @param {[string, string][]} remarks */
export function showRemarks(remarks) {
  element("remarks-card").hidden = !remarks.length;
  const create = () => make("tr", {}, make("th", { scope: "row" }), make("td"));
  keyed(element("remarks"), remarks.slice(0, 100), ([about, text]) => `${about} ${text}`, create, (row, [about, text]) => {
    write(row.children[0], about);
    write(row.children[1], text);
  });
}

/** @param {any} one @param {(topic: string, publisher: import("./ids.js").Id) => void} choose */
function streamRow(one, choose) {
  const name = make("button", { type: "button", class: "link mono", title: `${one.topic}: show its tree` }, one.topic);
  name.addEventListener("click", () => choose(one.topic, one.publisher));
  const cells = ["mono", "number", "mono", "number", "mono", "number", "number"];
  return make("tr", {}, make("td", {}, name), ...cells.map((kind) => make("td", { class: kind })));
}

/** @param {any} row @param {any} one */
function updateStream(row, one) {
  const slow = Object.keys(one.slow).length;
  const children = one.children.map(shortId).join(" ") || "–";
  const cells = [
    shortId(one.publisher),
    count(one.messages),
    one.parent === null ? (one.depth ? "looking for one" : "–") : shortId(one.parent),
    count(one.depth),
    slow ? `${children} (${plural(slow, "slow one")})` : children,
    count(one.behind),
    one.copies_per_message.toFixed(2),
  ];
  cells.forEach((text, index) => write(row.children[1 + index], text));
}

/** The page: asks the node again and again, and shows what it says. */

import { ask, remember, TokenNeeded } from "./api.js";
import { Chart, SECONDS } from "./chart.js";
import { CubeDrawing } from "./cube.js";
import { element, keyed, make, write } from "./elements.js";
import { showFaults } from "./faults.js";
import { duration, plural, rate } from "./format.js";
import { showHeld } from "./held.js";
import { idOf } from "./ids.js";
import { depths } from "./layout.js";
import { showMembers, showRemarks, showStreams, showTopics } from "./tables.js";
import { themeButton } from "./theme.js";
import { tellFaults, tellHeld, tellMembers, tellRates, tellVerdict } from "./tiles.js";

const CUBE_EVERY = 400;
const REST_EVERY = 1000;
const HIDDEN_EVERY = 5000;

/** What is chosen: the source of the tree, null for the node that answers, and the topic, empty for everybody. */
const chosen = { root: null, topic: "" };
const drawing = new CubeDrawing(element("cube"), chooseRoot);
const charts = [
  new Chart("Messages per second", "at this node", [
    { name: "delivered", value: (sample) => sample.delivered },
    { name: "published", value: (sample) => sample.published },
  ], (value) => (value === null ? "–" : rate(value))),
  new Chart("Latency", "publication here to delivery at others", [
    { name: "p50", value: (sample) => sample.latency.p50 },
    { name: "p99", value: (sample) => sample.latency.p99 },
    { name: "p99 until stable", value: (sample) => sample.stability.p99 },
  ], duration),
  new Chart("Holding time", "arrival here to delivery here", [
    { name: "p50", value: (sample) => sample.holding.p50 },
    { name: "p99", value: (sample) => sample.holding.p99 },
  ], duration),
];
const refreshers = [];

function chooseRoot(root) {
  chosen.root = root;
  refreshers[0]();
}

function chooseTopic(topic) {
  chosen.topic = topic;
  refreshers[0]();
  element("cube").scrollIntoView({ block: "nearest", behavior: "smooth" });
}

/** @param {string} topic @param {import("./ids.js").Id} publisher */
function chooseStream(topic, publisher) {
  chosen.root = publisher;
  chooseTopic(topic);
}

async function showCube() {
  const said = await ask("cube", { root: chosen.root, topic: chosen.topic });
  write(element("cluster"), said.cluster);
  write(element("whoami"), `node ${said.node}${said.incarnation ? `, incarnation ${said.incarnation}` : ""}`);
  document.title = `${said.cluster} · node ${said.node}`;
  showChoices(said);
  const name = { cube: "Cube", tree: "Tree of nodes", graph: "Graph" }[said.overlay.shape] ?? said.overlay.shape;
  for (const id of ["cube-title", "cube-choice"]) write(element(id), name);
  drawing.show(said.members, said.tree, said.overlay);
  describeTree(said);
  showMembers(said.members);
  tellMembers(said.members);
  sayState("connected", "live");
}

function showChoices({ members, tree, node }) {
  const options = members.map((member) => [String(member.node), `node ${member.node}${member.node === node ? " (this)" : ""}`]);
  fill(element("root"), options, String(tree.root));
}

/** @param {HTMLSelectElement} select @param {string[][]} options @param {string} value */
function fill(select, options, value) {
  const create = ([key]) => make("option", { value: key });
  keyed(select, options, ([key]) => key, create, (option, [, text]) => write(option, text));
  if (document.activeElement !== select && select.value !== value) select.value = value;
}

function describeTree({ tree }) {
  const reached = Object.keys(tree.children).length - 1;
  if (reached < 0) {
    write(element("tree-text"), `What node ${tree.root} publishes takes no fixed way that is known here.`);
    return;
  }
  const deepest = Math.max(...depths(tree).values());
  const whom = tree.topic ? `${plural(reached, "subscriber")} of ${tree.topic}` : `${plural(reached, "other member")}`;
  const steps = reached ? ` in at most ${plural(deepest, "step")}` : "";
  const part = tree.whole ? "" : " That is the way to this node and on from it; no node knows the whole tree.";
  write(element("tree-text"), `What node ${tree.root} publishes reaches ${whom}${steps}.${part}`);
}

async function showRates() {
  const said = await ask("rates", { last: 125 });
  for (const chart of charts) chart.show(said.samples, said.at);
  const seen = said.samples.filter((sample) => sample.at > said.at - SECONDS);
  const latest = (kind) => seen.findLast((sample) => sample[kind].p50 !== null)?.[kind];
  tellRates(said.samples.at(-1), latest("latency"), latest("stability"));
}

async function showTheTopics() {
  const said = await ask("topics");
  showTopics(said.topics, said.topics_in_all, chooseTopic);
  showStreams(said.streams, chooseStream);
  showRemarks(said.remarks);
  const names = said.topics.slice(0, 200).map(({ topic }) => topic).sort();
  if (chosen.topic && !names.includes(chosen.topic)) names.push(chosen.topic);
  fill(element("topic"), [["", "everybody"], ...names.map((name) => [name, name])], chosen.topic);
}

async function showTheHeld() {
  const said = await ask("held");
  showHeld(said);
  tellHeld(said.held_in_all, said.held[0]?.for ?? 0);
}

async function showTheFaults() {
  const said = await ask("faults");
  tellFaults(showFaults(said));
  tellVerdict(said.verdict);
}

/** @param {string} state @param {string} text */
function sayState(state, text) {
  element("state").dataset.state = state;
  write(element("state"), text);
  document.body.classList.toggle("stale", state !== "connected");
}

/**
 * Again and again, and at once when called.
 * @param {() => Promise<void>} show @param {number} every milliseconds
 */
function repeat(show, every) {
  let timer;
  const turn = async () => {
    clearTimeout(timer);
    try {
      await show();
    } catch (error) {
      if (error instanceof TokenNeeded) return askForToken(error.message);
      sayState("closed", `no answer from the node: ${error.message}`);
    }
    clearTimeout(timer);
    timer = setTimeout(turn, document.hidden ? HIDDEN_EVERY : every);
  };
  refreshers.push(turn);
  turn();
}

/** @param {string} reason */
function askForToken(reason) {
  write(element("token-reason"), reason);
  sayState("closed", "waiting for a token");
  if (!element("token-dialog").open) element("token-dialog").showModal();
}

function listen() {
  themeButton(element("theme"));
  element("root").addEventListener("change", ({ target }) => chooseRoot(idOf(target.value)));
  element("topic").addEventListener("change", ({ target }) => chooseTopic(target.value));
  for (const radio of document.querySelectorAll("[name=view]")) {
    radio.addEventListener("change", () => drawing.look(radio.value));
  }
  const restart = () => refreshers.forEach((turn) => turn());
  element("token-form").addEventListener("submit", () => {
    remember(element("token").value);
    element("token").value = "";
  });
  element("token-dialog").addEventListener("close", restart); // whoever dismisses it is asked again, or sees nothing
  document.addEventListener("visibilitychange", () => document.hidden || restart());
  element("charts").append(...charts.map((chart) => chart.card));
}

listen();
repeat(showCube, CUBE_EVERY);
for (const show of [showRates, showTheTopics, showTheHeld, showTheFaults]) repeat(show, REST_EVERY);

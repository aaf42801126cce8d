/** The drawing of the cluster: members, what connects them (cube, tree or graph), and the tree of one source. */

import { keyed, makeSvg, set, write } from "./elements.js";
import { idOf, shortId } from "./ids.js";
import { cubeLayout, differingBits, overlayLayout, smallestDistance, treeLayout, wayTo } from "./layout.js";

const LARGEST_RADIUS = 21;
/** Width of a digit, in sizes of its letters. */
const DIGIT = 0.62;
const WORDS = {
  self: "this node",
  alive: "alive",
  disconnected: "link lost",
  suspected: "held faulty",
  left: "left",
  unknown: "never met",
};

/** @typedef {import("./ids.js").Id} Id */
/** @typedef {{ node: Id, incarnation: number, address: string, state: string, since: number | null,
 *   connected: boolean, queued: number }} Member */
/** @typedef {{ shape: string, edges: [Id, Id, string][] }} Overlay */
/** @typedef {{ root: Id, topic: string | null, children: Record<string, Id[]> }} Tree */

/** @param {string} state */
export const stateName = (state) => WORDS[state] ?? state;

export class CubeDrawing {
  #svg;
  #choose;
  #free = makeSvg("g", { class: "free", "aria-hidden": "true" });
  #edges = makeSvg("g", { class: "edges", "aria-hidden": "true" });
  #branches = makeSvg("g", { class: "branches", "aria-hidden": "true" });
  #nodes = makeSvg("g", { class: "nodes" });
  /** @type {{ members: Member[], tree: Tree, overlay: Overlay } | null} */
  #shown = null;
  #view = "cube";
  /** @type {number | null} */
  #pointed = null;

  /** @param {Element} svg @param {(node: number) => void} choose called when somebody picks a node */
  constructor(svg, choose) {
    this.#svg = svg;
    this.#choose = choose;
    svg.append(arrow(), this.#edges, this.#branches, this.#free, this.#nodes);
    new ResizeObserver(() => this.#draw()).observe(svg);
  }

  /** @param {"cube" | "tree"} view */
  look(view) {
    this.#view = view;
    this.#draw();
  }

  /** @param {Member[]} members @param {Tree} tree @param {Overlay} overlay */
  show(members, tree, overlay) {
    this.#shown = { members, tree, overlay };
    this.#draw();
  }

  #draw() {
    if (!this.#shown) return;
    const { members, tree, overlay } = this.#shown;
    const ids = members.map((member) => member.node);
    const isCube = overlay.shape === "cube";
    const [width, height] = this.#size(ids.length);
    const margin = LARGEST_RADIUS + 12;
    const cube = isCube
      ? cubeLayout(ids, width, height, margin)
      : { places: overlayLayout(overlay, ids, width, height, margin), free: [] };
    const isTree = this.#view === "tree";
    const places = isTree ? treeLayout(tree, ids, width, height, margin) : cube.places;
    const radius = Math.min(LARGEST_RADIUS, 0.38 * smallestDistance(places.values()));
    set(this.#svg, { viewBox: `0 0 ${width} ${height}`, "data-view": this.#view, "data-shape": overlay.shape });
    this.#drawFree(isTree ? [] : cube.free);
    this.#drawEdges(isTree ? [] : isCube ? neighbours(ids) : known(overlay.edges, places), places);
    this.#drawBranches(tree, places, radius, isTree ? drop : curve);
    this.#drawNodes(members, tree, places, radius);
    this.#showWay();
  }

  /** @param {number} count @returns {number[]} what the drawing may fill, in pixels; the style gives many more room */
  #size(count) {
    set(this.#svg, { "data-many": count > 20 });
    return [Math.max(280, this.#svg.clientWidth || 800), Math.max(240, this.#svg.clientHeight || 440)];
  }

  /** The way to the node somebody points at. */
  #showWay() {
    const way = this.#pointed === null ? new Set() : wayTo(this.#shown.tree, this.#pointed);
    for (const path of this.#branches.children) path.classList.toggle("way", way.has(path.getAttribute("data-key")));
    this.#branches.classList.toggle("pointed", way.size > 0);
  }

  /** @param {number | null} node */
  #point(node) {
    this.#pointed = node;
    this.#showWay();
  }

  /** @param {{ x: number, y: number }[]} free */
  #drawFree(free) {
    const items = free.map((point, index) => ({ point, key: String(index) }));
    const create = () => makeSvg("circle", { r: 2.5 });
    keyed(this.#free, items, (one) => one.key, create, (dot, { point }) => set(dot, { cx: point.x, cy: point.y }));
  }

  /** @param {[number, number, string?][]} pairs @param {Map<number, { x: number, y: number }>} places */
  #drawEdges(pairs, places) {
    const update = (line, [one, other, label]) => {
      const [from, to] = [places.get(one), places.get(other)];
      set(line, { x1: from.x, y1: from.y, x2: to.x, y2: to.y });
      write(line.children[0], label ?? "");
    };
    const key = ([one, other]) => `${one}-${other}`;
    keyed(this.#edges, pairs, key, () => makeSvg("line", {}, makeSvg("title")), update);
  }

  /** @param {Tree} tree @param {Map<number, any>} places @param {number} radius @param {typeof curve} way */
  #drawBranches(tree, places, radius, way) {
    const pairs = Object.entries(tree.children).flatMap(([id, below]) => below.map((child) => [idOf(id), child]));
    const drawn = pairs.filter(([from, to]) => places.has(from) && places.has(to));
    const create = () => makeSvg("path", { "marker-end": "url(#arrow)" });
    set(this.#branches, { "stroke-width": radius > 14 ? 1.8 : 1.25 });
    keyed(this.#branches, drawn, (pair) => pair.join("-"), create, (path, [from, to]) => {
      set(path, { d: way(places.get(from), places.get(to), radius) });
    });
  }

  /** @param {Member[]} members @param {Tree} tree @param {Map<number, any>} places @param {number} radius */
  #drawNodes(members, tree, places, radius) {
    const update = (group, member) => this.#updateNode(group, member, tree, places.get(member.node), radius);
    keyed(this.#nodes, members, (member) => String(member.node), (member) => this.#makeNode(member), update);
  }

  /** @param {Member} member */
  #makeNode(member) {
    const group = makeSvg(
      "g",
      { class: "node", tabindex: 0, role: "button", "data-node": member.node },
      makeSvg("circle", { class: "halo" }),
      makeSvg("circle", { class: "body" }),
      makeSvg("text", { "text-anchor": "middle", dy: "0.36em" }, shortId(member.node)),
      makeSvg("title"),
    );
    group.addEventListener("click", () => this.#choose(member.node));
    for (const event of ["pointerenter", "focus"]) group.addEventListener(event, () => this.#point(member.node));
    for (const event of ["pointerleave", "blur"]) group.addEventListener(event, () => this.#point(null));
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.#choose(member.node);
    });
    return group;
  }

  /** @param {any} group @param {Member} member @param {Tree} tree @param {any} place @param {number} radius */
  #updateNode(group, member, tree, place, radius) {
    const isNew = group.dataset.state !== member.state;
    const isIn = member.node in tree.children;
    set(group, {
      "data-state": member.state,
      "data-role": member.node === tree.root ? "root" : isIn ? "reached" : "outside",
      "aria-label": `node ${member.node}, ${stateName(member.state)}${member.node === tree.root ? ", source of the tree" : ""}`,
      "aria-pressed": member.node === tree.root,
    });
    group.style.transform = `translate(${place.x}px, ${place.y}px)`;
    set(group.children[0], { r: radius + Math.min(5, radius / 3) });
    set(group.children[1], { r: radius });
    const fits = (1.5 * radius) / (DIGIT * shortId(member.node).length);
    group.children[2].style.fontSize = radius < 6 ? "0" : `${Math.max(7.5, Math.min(16, radius * 0.9, fits))}px`;
    write(group.children[3], `node ${member.node} (${stateName(member.state)}) at ${member.address}`);
    // When the page first showed it, by the page's own clock.
    if (isNew) performance.mark(`node ${member.node} ${member.state}`);
  }
}

/** @param {number[]} ids @returns {[number, number][]} pairs that differ in one bit */
function neighbours(ids) {
  const known = new Set(ids);
  const bits = differingBits(ids);
  return ids.flatMap((id) => bits.map((bit) => [id, id | (1 << bit)]).filter(([a, b]) => a !== b && known.has(b)));
}

/** @param {[number, number, string][]} edges @param {Map<number, any>} places those between members, each once */
function known(edges, places) {
  const drawn = new Set();
  return edges.filter(([one, other]) => {
    const key = one < other ? `${one}-${other}` : `${other}-${one}`;
    if (!places.has(one) || !places.has(other) || drawn.has(key)) return false;
    drawn.add(key);
    return true;
  });
}

/** A way that bends a little, and ends at the rim of the node. */
function curve(from, to, radius) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const bend = Math.min(26, length * 0.09);
  const via = { x: (from.x + to.x) / 2 - (dy / length) * bend, y: (from.y + to.y) / 2 + (dx / length) * bend };
  const rest = Math.hypot(to.x - via.x, to.y - via.y) || 1;
  const short = radius + 3;
  const end = { x: to.x - ((to.x - via.x) / rest) * short, y: to.y - ((to.y - via.y) / rest) * short };
  return `M${from.x} ${from.y}Q${via.x} ${via.y} ${end.x} ${end.y}`;
}

/** A way that goes down, from one level of a tree to the next. */
function drop(from, to, radius) {
  const end = to.y - radius - 3;
  const middle = (from.y + end) / 2;
  return `M${from.x} ${from.y}C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${end}`;
}

function arrow() {
  const head = makeSvg("path", { d: "M0 0L7 3.5L0 7z" });
  const attributes = { id: "arrow", viewBox: "0 0 7 7", refX: 5.5, refY: 3.5, markerWidth: 4.4, markerHeight: 4.4 };
  return makeSvg("defs", {}, makeSvg("marker", { ...attributes, orient: "auto" }, head));
}

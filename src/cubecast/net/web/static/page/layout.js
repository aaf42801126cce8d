/** Where members are drawn: as the hypercube they form, or as the tree of one of them. Pure functions. */

import { idOf } from "./ids.js";

/** @typedef {{ x: number, y: number }} Point */
/** @typedef {import("./ids.js").Id} Id */

/**
 * What each bit of an id adds to the position. Three bits make a little cube; the others set such cubes side by side.
 * A slight slant keeps edges from running through nodes.
 */
const ACROSS = [
  [1, 0],
  [0, 1],
  [0.42, -0.36],
  [2.06, 0.2],
  [0.16, 2.02],
  [4.16, 0.34],
];
const LARGEST_STEP = 190;
const MOST_STRETCHED = 1.7;

/** @param {number[]} ids @returns {number[]} the bits in which they differ */
export function differingBits(ids) {
  const differing = ids.reduce((bits, id) => bits | (id ^ ids[0]), 0);
  return Array.from({ length: 31 }, (_, bit) => bit).filter((bit) => (differing >> bit) & 1);
}

/** @param {number} bit @param {boolean} upright */
function step(bit, upright) {
  const stretch = 2 ** Math.max(0, Math.floor((bit - 3) / 3));
  const [x, y] = bit < 6 ? ACROSS[bit] : ACROSS[3 + (bit % 3)].map((part) => part * stretch * 2);
  return upright && bit >= 3 ? [y, x] : [x, y];
}

/**
 * @param {number[]} ids
 * @param {number} width
 * @param {number} height
 * @param {number} margin
 * @returns {{ places: Map<number, Point>, free: Point[] }} members, and the places between them that nobody holds
 */
export function cubeLayout(ids, width, height, margin) {
  const bits = differingBits(ids);
  const base = ids.length ? ids[0] & ~bits.reduce((mask, bit) => mask | (1 << bit), 0) : 0;
  const raw = new Map();
  for (let number = 0; number < 2 ** bits.length; number++) {
    let id = base;
    const point = { x: 0, y: 0 };
    bits.forEach((bit, index) => {
      if (!((number >> index) & 1)) return;
      const [x, y] = step(index, height > width);
      point.x += x;
      point.y += y;
      id |= 1 << bit;
    });
    raw.set(id, point);
  }
  const fitted = fit(raw, width, height, margin);
  const held = new Set(ids);
  const free = [...fitted].filter(([id]) => !held.has(id)).map(([, point]) => point);
  return { places: new Map(ids.map((id) => [id, fitted.get(id)])), free: fitted.size <= 64 ? free : [] };
}

/**
 * Into the frame, with more room upwards where there is some, but never so much that a cube is no cube any more.
 * @param {Map<number, Point>} raw @param {number} width @param {number} height @param {number} margin
 */
function fit(raw, width, height, margin) {
  const points = [...raw.values()];
  const [left, right] = extent(points.map((point) => point.x));
  const [top, bottom] = extent(points.map((point) => point.y));
  const across = (width - 2 * margin) / Math.max(right - left, 1e-9);
  const down = (height - 2 * margin) / Math.max(bottom - top, 1e-9);
  const x = Math.min(across, down * MOST_STRETCHED, LARGEST_STEP);
  const y = Math.min(down, across * MOST_STRETCHED, LARGEST_STEP);
  const offset = { x: (width - x * (left + right)) / 2, y: (height - y * (top + bottom)) / 2 };
  return new Map([...raw].map(([id, point]) => [id, { x: offset.x + x * point.x, y: offset.y + y * point.y }]));
}

/**
 * Members of an overlay that is no cube: a tree as one, anything else in a circle, who has most neighbours first.
 * @param {{ shape: string, edges: [Id, Id, string][] }} overlay
 * @param {Id[]} ids @param {number} width @param {number} height @param {number} margin
 * @returns {Map<number, Point>}
 */
export function overlayLayout(overlay, ids, width, height, margin) {
  if (overlay.shape === "tree" && overlay.edges.length) return treeLayout(asTree(overlay.edges), ids, width, height, margin);
  const degree = new Map(ids.map((id) => [id, 0]));
  for (const ends of overlay.edges) for (const id of ends.slice(0, 2)) degree.set(id, (degree.get(id) ?? 0) + 1);
  const order = [...ids].sort((one, other) => degree.get(other) - degree.get(one) || one - other);
  const across = (width - 2 * margin) / 2;
  const down = (height - 2 * margin) / 2;
  const turn = (2 * Math.PI) / Math.max(order.length, 1);
  return new Map(
    order.map((id, index) => [
      id,
      { x: width / 2 + across * Math.sin(index * turn), y: height / 2 - down * Math.cos(index * turn) },
    ]),
  );
}

/** @param {[Id, Id, string][]} edges from parents to children */
function asTree(edges) {
  const children = {};
  for (const [from, to] of edges) {
    (children[from] ??= []).push(to);
    children[to] ??= [];
  }
  const below = new Set(edges.map(([, to]) => to));
  const root = edges.map(([from]) => from).find((id) => !below.has(id)) ?? edges[0][0];
  return { root, children };
}

/** @param {Iterable<Point>} points @returns {number} between those two that are nearest to each other */
export function smallestDistance(points) {
  const all = [...points];
  let nearest = Infinity;
  all.forEach((one, index) => {
    for (const other of all.slice(index + 1)) nearest = Math.min(nearest, Math.hypot(one.x - other.x, one.y - other.y));
  });
  return nearest;
}

/** @param {number[]} numbers */
function extent(numbers) {
  return numbers.length ? [Math.min(...numbers), Math.max(...numbers)] : [0, 0];
}

/**
 * @param {{ root: Id, children: Record<string, Id[]> }} tree
 * @param {number[]} ids
 * @param {number} width
 * @param {number} height
 * @param {number} margin
 * @returns {Map<Id, Point>} those who are not in the tree stand in a row below it
 */
export function treeLayout(tree, ids, width, height, margin) {
  const columns = new Map();
  let leaves = 0;
  const depth = depths(tree);
  /** @param {number} id @returns {number} its column: above the middle of its children */
  const place = (id) => {
    const below = tree.children[id] ?? [];
    const found = below.length ? middle(below.map(place)) : leaves++;
    columns.set(id, found);
    return found;
  };
  place(tree.root);
  const apart = ids.filter((id) => !columns.has(id));
  const rows = Math.max(...depth.values(), 0) + (apart.length ? 1.4 : 0);
  const across = Math.min(LARGEST_STEP, (width - 2 * margin) / Math.max(leaves - 1, apart.length - 1, 1));
  const down = Math.min(LARGEST_STEP * 0.8, (height - 2 * margin) / Math.max(rows, 1));
  const left = (width - across * (leaves - 1)) / 2;
  const top = (height - down * rows) / 2;
  const places = new Map();
  for (const [id, column] of columns) places.set(id, { x: left + across * column, y: top + down * depth.get(id) });
  apart.forEach((id, index) => {
    places.set(id, { x: (width - across * (apart.length - 1)) / 2 + across * index, y: top + down * rows });
  });
  return places;
}

/** @param {number[]} numbers */
function middle(numbers) {
  return (Math.min(...numbers) + Math.max(...numbers)) / 2;
}

/** @param {{ root: Id, children: Record<string, Id[]> }} tree @returns {Map<number, number>} */
export function depths(tree) {
  const found = new Map([[tree.root, 0]]);
  for (const [id, depth] of found) {
    for (const child of tree.children[id] ?? []) found.set(child, depth + 1);
  }
  return found;
}

/**
 * @param {{ root: Id, children: Record<string, Id[]> }} tree
 * @param {Id} node
 * @returns {Set<string>} the branches from the root to the node, as "parent-child"
 */
export function wayTo(tree, node) {
  const parents = new Map(Object.entries(tree.children).flatMap(([id, below]) => below.map((child) => [child, idOf(id)])));
  const way = new Set();
  for (let at = node; parents.has(at); at = parents.get(at)) way.add(`${parents.get(at)}-${at}`);
  return way;
}

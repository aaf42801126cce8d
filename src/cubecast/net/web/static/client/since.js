/** Where a subscription starts in a node's log, as a page says it and as it travels. */

import { BadInput } from "./errors.js";

const BEGINNING = 1;
const NOW = 2;
const OFFSET = 3;
const TIME = 4;
const CUT = 5;
const MOST_PUBLISHERS = 20000;

/** @typedef {[topic: string, source: number, incarnation: number, counter: number]} Known */
/** @typedef {"beginning" | "now" | number | Date | Known[]} Since a whole number is an offset */

/** @param {Since} since @returns {any[]} */
export function start(since) {
  if (since === "beginning") return [BEGINNING];
  if (since === "now") return [NOW];
  if (Number.isSafeInteger(since) && since >= 0) return [OFFSET, since];
  if (since instanceof Date && !Number.isNaN(since.getTime())) return [TIME, since.getTime() / 1000];
  if (Array.isArray(since) && since.every(isKnown)) return cut(since);
  throw new BadInput('since is an offset, a Date, a cut, "beginning" or "now"');
}

/** @param {any} entry */
function isKnown(entry) {
  if (!Array.isArray(entry) || entry.length !== 4) return false;
  return typeof entry[0] === "string" && entry.slice(1).every(Number.isSafeInteger);
}

/** @param {Known[]} known @param {boolean} [resumes] */
function cut(known, resumes = false) {
  if (known.length > MOST_PUBLISHERS) throw new BadInput(`a cut names at most ${MOST_PUBLISHERS} publishers`);
  return [CUT, known, resumes];
}

/** What a subscription knows of its place in the log, to go on there at another node. */
export class Position {
  #began;
  #hasCaughtUp = false;
  /** @type {number | null} */
  #beganAt = null;

  /** @param {Since} since */
  constructor(since) {
    this.#began = start(since);
  }

  get first() {
    return this.#began;
  }

  caughtUp() {
    this.#hasCaughtUp = true;
  }

  /** @param {number} at when the node delivered it */
  delivered(at) {
    this.#beganAt ??= at;
  }

  /**
   * Behind what is known. Before it is known what was before the beginning, only the time of it means the same there.
   * @param {Known[]} known
   */
  elsewhere(known) {
    const [kind] = this.#began;
    if (this.#hasCaughtUp || kind === BEGINNING || kind === CUT) {
      return known.length <= MOST_PUBLISHERS ? cut(known, true) : [NOW];
    }
    if (kind === TIME) return this.#began;
    return this.#beganAt === null ? [NOW] : [TIME, this.#beganAt];
  }

  /** Does what `elsewhere` says leave it to the node to say whether anything is missing? @param {any[]} where */
  static resumes(where) {
    return where[0] === CUT;
  }
}

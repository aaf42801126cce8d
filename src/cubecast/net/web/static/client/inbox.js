/**
 * The bounded queue between the network and a page that reads at its own pace.
 *
 * What has arrived and not been read is charged against a byte budget. When it is used up, the policy decides: ask the
 * node to wait ("block"), end the subscription ("disconnect"), or drop and say so ("drop-oldest", "drop-newest").
 */

import { BadInput } from "./errors.js";
import { Gap, Runs } from "./events.js";

export const MESSAGE_OVERHEAD = 64;
export const POLICIES = ["block", "disconnect", "drop-oldest", "drop-newest"];
const TOO_SLOW = "the reader was too slow";

/** @typedef {import("./events.js").Message | Gap} Event */
/**
 * @typedef {object} Owner what the queue asks of its subscription
 * @property {string} pattern
 * @property {() => void} pause
 * @property {() => void} resume
 * @property {(reason: string) => void} cutOff
 */

export class Inbox {
  /** @type {{ event: Event | Runs, size: number }[]} */
  #queue = [];
  #head = 0;
  #held = 0;
  #owner;
  #whenSlow;
  #budget;
  #patience;
  #isPaused = false;
  #lastRead = 0;
  /** @type {number | undefined} */
  #watch;

  /**
   * @param {Owner} owner
   * @param {{ whenSlow?: string, budget?: number, patience?: number }} options bytes, and milliseconds
   */
  constructor(owner, { whenSlow = "block", budget = 8 << 20, patience = 5000 } = {}) {
    if (!POLICIES.includes(whenSlow)) throw new BadInput(`whenSlow is one of ${POLICIES.join(", ")}, not ${whenSlow}`);
    if (!(budget >= 1) || !(patience > 0)) throw new BadInput("budget and patience are more than nothing");
    this.#owner = owner;
    this.#whenSlow = whenSlow;
    this.#budget = budget;
    this.#patience = patience;
  }

  /** Bytes that have arrived and are not read. */
  get held() {
    return this.#held;
  }

  get isEmpty() {
    return this.#head >= this.#queue.length;
  }

  get isPaused() {
    return this.#isPaused;
  }

  /** @param {Event} event */
  admit(event) {
    const size = event instanceof Gap ? MESSAGE_OVERHEAD * (1 + event.missing.length) : weight(event.sealed);
    if (this.#whenSlow === "block") {
      this.#append(event, size);
      if (this.#held >= this.#budget && !this.#isPaused) this.#pause();
    } else if (this.#held + size <= this.#budget || this.#held === 0) this.#append(event, size);
    else if (this.#whenSlow === "disconnect") {
      this.#owner.cutOff(`${this.#held} bytes were waiting to be read, the budget is ${this.#budget}`);
    } else if (this.#whenSlow === "drop-newest") this.#dropNewest(event);
    else this.#dropOldest(event, size);
  }

  /** @returns {Event | undefined} the next one to read */
  take() {
    if (this.isEmpty) return undefined;
    const { event, size } = this.#shift();
    this.#held -= size;
    if (this.#isPaused) {
      this.#lastRead = performance.now();
      if (this.#held <= this.#budget / 2) this.#resume();
    }
    return event instanceof Runs ? event.gap(this.#owner.pattern, TOO_SLOW) : event;
  }

  clear() {
    this.#queue = [];
    this.#head = this.#held = 0;
    this.stopWatching();
  }

  stopWatching() {
    clearTimeout(this.#watch);
  }

  /** @param {Event | Runs} event @param {number} size */
  #append(event, size) {
    this.#queue.push({ event, size });
    this.#held += size;
  }

  #shift() {
    const first = this.#queue[this.#head];
    this.#queue[this.#head++] = undefined;
    if (this.#head > 1024 && this.#head * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#head);
      this.#head = 0;
    }
    return first;
  }

  /** @param {Event} event */
  #dropNewest(event) {
    let last = this.#queue.at(-1)?.event;
    if (!(last instanceof Runs)) {
      last = new Runs();
      this.#append(last, 0);
    }
    drop(last, event);
  }

  /** @param {Event} event @param {number} size */
  #dropOldest(event, size) {
    const dropped = new Runs();
    while (!this.isEmpty && this.#held + size > this.#budget) {
      const oldest = this.#shift();
      this.#held -= oldest.size;
      drop(dropped, oldest.event instanceof Runs ? oldest.event.gap("", "") : oldest.event);
    }
    this.#queue[--this.#head] = { event: dropped, size: 0 };
    this.#append(event, size);
  }

  #pause() {
    this.#isPaused = true;
    this.#lastRead = performance.now();
    this.#owner.pause();
    this.#watch = setTimeout(() => this.#checkProgress(), this.#patience);
  }

  #resume() {
    this.#isPaused = false;
    clearTimeout(this.#watch);
    this.#owner.resume();
  }

  /** Others wait for this reader, but not for one that has stopped. */
  #checkProgress() {
    const left = this.#lastRead + this.#patience - performance.now();
    if (left > 0) this.#watch = setTimeout(() => this.#checkProgress(), left);
    else this.#owner.cutOff(`nothing was read for ${this.#patience} ms while others waited`);
  }
}

/** @param {Runs} into @param {Event} event */
function drop(into, event) {
  if (event instanceof Gap) into.addGap(event);
  else into.add(event.topic, event.source, event.incarnation, event.counter);
}

/** @param {Uint8Array} payload what it costs whoever keeps it */
export function weight(payload) {
  return payload.length + MESSAGE_OVERHEAD;
}

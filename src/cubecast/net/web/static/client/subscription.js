/** One subscription; it outlives the connections it is served through. */

import { BadInput, Closed, Missed, SlowConsumer } from "./errors.js";
import { Gap, Message, namedGap } from "./events.js";
import { Inbox } from "./inbox.js";
import { Position } from "./since.js";
import { PAUSE, RESUME, SUBSCRIBE, UNSUBSCRIBE } from "./wire.js";

const PUBLISHERS_REMEMBERED = 65536;
const GAPS = ["yield", "raise", "ignore"];

/** @typedef {Message | Gap} Event */
/**
 * @typedef {object} SubscriptionOptions
 * @property {import("./since.js").Since} [since] where in the node's log to begin: an offset, a Date, a cut, "beginning"
 *   or "now"; without, with what is published from now on, and slow readers slow publishers down
 * @property {string} [where] a filter over topic and headers: the node leaves out what does not match
 * @property {"yield" | "raise" | "ignore"} [gaps] how a reader learns of a gap
 * @property {"block" | "disconnect" | "drop-oldest" | "drop-newest"} [whenSlow] what happens when nobody reads
 * @property {number} [budget] bytes that may wait to be read, 8 MiB
 * @property {number} [patience] milliseconds others wait for a reader that has stopped, 5000
 */

/** `await subscription.ready; for await (const event of subscription) …` */
export class Subscription {
  #number;
  #send;
  #forget;
  /** @type {Position | null} */
  #position;
  /** @type {string | undefined} */
  #where;
  #gaps;
  #inbox;
  /** @type {(() => void)[]} readers that wait for what comes next */
  #readers = [];
  /** @type {Map<string, import("./since.js").Known>} the last message per topic and publisher */
  #last = new Map();
  #isPartial = false;
  /** A node served it, so that the next one goes on and does not begin. */
  #isOpened = false;
  /** Moved, and not known yet whether the new node's log can give what it asks for. */
  #isAskingALog = false;
  #moved = "";
  #isOver = false;
  /** @type {Error | undefined} */
  #error;
  #becomeReady;
  #neverReady;
  #end;

  /**
   * @param {number} number
   * @param {string} pattern
   * @param {SubscriptionOptions} options
   * @param {{ send: (message: any[]) => void, forget: (number: number) => void }} client
   */
  constructor(number, pattern, options, { send, forget }) {
    const { since, where, gaps = "yield", ...limits } = options;
    if (where !== undefined && typeof where !== "string") throw new BadInput("a filter is text");
    if (!GAPS.includes(gaps)) throw new BadInput(`gaps is one of ${GAPS.join(", ")}, not ${gaps}`);
    this.pattern = pattern;
    this.#number = number;
    this.#send = send;
    this.#forget = forget;
    this.#position = since === undefined ? null : new Position(since);
    this.#where = where;
    this.#gaps = gaps;
    this.#inbox = new Inbox(
      {
        pattern,
        pause: () => send([PAUSE, number]),
        resume: () => send([RESUME, number]),
        cutOff: (reason) => this.#leave(new SlowConsumer(`${pattern}: ${reason}`)),
      },
      limits,
    );
    /** Done when whatever is published from now on, anywhere, arrives here. @type {Promise<void>} */
    this.ready = new Promise((resolve, reject) => {
      this.#becomeReady = resolve;
      this.#neverReady = reject;
    });
    this.ready.catch(() => {}); // whoever waits gets it; if nobody does, that is no mistake
    /** Done when nothing comes any more, with the error that ended it or undefined. @type {Promise<Error | undefined>} */
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  get closed() {
    return this.#isOver;
  }

  /** Bytes that have arrived and wait to be read. */
  get held() {
    return this.#inbox.held;
  }

  /**
   * The next event. Throws Closed when none will come, the error that ended the subscription, or, with `gaps: "raise"`,
   * Missed.
   * @returns {Promise<Event>}
   */
  async next() {
    const { value, done } = await this.#read();
    if (done) throw new Closed(`the subscription to ${this.pattern} is closed`);
    return value;
  }

  /** Leaving a loop loses nothing: the next reader goes on where the last one stopped. @returns {AsyncIterator<Event>} */
  [Symbol.asyncIterator]() {
    return { next: () => this.#read() };
  }

  /** Unsubscribe. What has arrived and was not read is gone. */
  close() {
    this.#leave();
    this.#inbox.clear();
    this.#error = undefined;
  }

  /** @returns {Promise<IteratorResult<Event, undefined>>} */
  async #read() {
    for (;;) {
      const event = this.#inbox.take();
      if (event instanceof Gap && this.#gaps === "raise") throw new Missed(event);
      if (event) return { value: event, done: false };
      if (this.#isOver) {
        if (this.#error) throw this.#error;
        return { value: undefined, done: true };
      }
      await new Promise((resolve) => this.#readers.push(() => resolve(undefined)));
    }
  }

  /** @param {Event} event */
  #admit(event) {
    if (this.#isOver || (event instanceof Gap && this.#gaps === "ignore")) return;
    this.#inbox.admit(event);
    this.#wake();
  }

  #wake() {
    const readers = this.#readers;
    this.#readers = [];
    for (const reader of readers) reader();
  }

  /** @param {Error} [error] end it from this side */
  #leave(error) {
    if (this.#isOver) return;
    this.#forget(this.#number);
    this.#send([UNSUBSCRIBE, this.#number]);
    this.onEnded(error);
  }

  // What the client tells it

  /** At a node that knows nothing of it. */
  open() {
    const where = this.#isOpened ? this.#elsewhere() : this.#position?.first;
    this.#isAskingALog = this.#isOpened && where !== undefined && !Position.resumes(where);
    this.#openAt(where);
  }

  /** @param {any[]} [where] */
  #openAt(where) {
    const filter = this.#where === undefined ? [] : [this.#where];
    const since = where || filter.length ? [where ?? null] : [];
    this.#send([SUBSCRIBE, this.#number, this.pattern, ...since, ...filter]);
    if (this.#inbox.isPaused) this.#send([PAUSE, this.#number]);
  }

  /** The new node's log cannot: better live, with the gap that was told, than not at all. False if it was not asked. */
  goesOnLive() {
    if (!this.#isAskingALog || this.#isOver) return false;
    this.#isAskingALog = false;
    this.#openAt();
    return true;
  }

  #elsewhere() {
    return this.#position?.elsewhere([...this.#last.values()]);
  }

  /**
   * @param {string} topic @param {number} source @param {number} incarnation @param {number} first
   * @param {Uint8Array[]} payloads @param {number | null} [offset] in the node's log @param {number} [at]
   */
  onDeliver(topic, source, incarnation, first, payloads, offset = null, at = 0) {
    // What another node delivered before is left out: it comes in each publisher's order, so a number tells.
    const publisher = `${source}.${incarnation} ${topic}`;
    const already = Math.max(0, (this.#last.get(publisher)?.[3] ?? 0) - first + 1);
    if (already >= payloads.length) return;
    this.#isOpened = true;
    this.#remember(publisher, [topic, source, incarnation, first + payloads.length - 1]);
    if (offset !== null) this.#position?.delivered(at);
    for (let index = already; index < payloads.length; index++) {
      const place = offset === null ? null : offset + index;
      this.#admit(new Message(topic, source, incarnation, first + index, payloads[index], place));
    }
  }

  /** @param {string} publisher @param {import("./since.js").Known} last */
  #remember(publisher, last) {
    if (!this.#last.has(publisher) && this.#last.size >= PUBLISHERS_REMEMBERED) {
      this.#last.delete(this.#last.keys().next().value);
    }
    this.#last.set(publisher, last);
  }

  /** All this is known, or came before the beginning. @param {import("./since.js").Known[]} known */
  onStanding(known) {
    for (const [topic, source, incarnation, counter] of known) {
      const publisher = `${source}.${incarnation} ${topic}`;
      const last = Math.max(counter, this.#last.get(publisher)?.[3] ?? 0);
      this.#remember(publisher, [topic, source, incarnation, last]);
    }
  }

  onCaughtUp() {
    this.#position?.caughtUp();
  }

  /** Whether the new node's log goes on where the other one's ended. @param {boolean} isComplete */
  onResumed(isComplete) {
    if (!isComplete) this.#tellMoved();
  }

  onReady() {
    this.#isOpened = true;
    this.#isAskingALog = false;
    if (this.#isPartial) {
      this.#isPartial = false;
      this.#admit(new Gap(this.pattern, "subscribed again; from here on all arrives"));
    }
    this.#becomeReady();
  }

  /**
   * @param {string} topic @param {[number, number, number][]} missing @param {string} reason
   * @param {[number, number, number, number][]} [runs] more of them @param {number} [count] how many more
   */
  onGap(topic, missing, reason, runs = [], count = 0) {
    this.#admit(namedGap(topic, missing, reason, runs, count));
  }

  /** @param {string} moved why nobody knows what was published in between */
  onMoved(moved) {
    this.#moved = moved;
    const where = this.#isOpened ? this.#elsewhere() : undefined;
    if (!where || !Position.resumes(where)) this.#tellMoved();
  }

  #tellMoved() {
    this.#isPartial = true;
    this.#admit(new Gap(this.pattern, `${this.#moved}; messages may be missing until the next gap`));
  }

  /** @param {Error} [error] */
  onEnded(error) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#inbox.stopWatching();
    this.#neverReady(error ?? new Closed(`the subscription to ${this.pattern} was closed before it was ready`));
    this.#end(error);
    this.#wake();
  }
}

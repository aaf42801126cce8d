/**
 * What a client publishes, until the node has taken it. Bookkeeping only: no connection, no clock.
 *
 * Those at the front are on their way (sent on this connection, not known to be taken), the rest has certainly not been
 * sent. When the connection breaks, the outcome of the former is unknown and the latter wait for the next connection.
 */

import { BadInput, Closed, OutcomeUnknown } from "./errors.js";
import { weight } from "./inbox.js";
import { AWAIT_DURABLE, AWAIT_STABLE, CREDIT, PUBLISH } from "./wire.js";

const MOST_BYTES = 64 << 10;
const MOST_MESSAGES = 512;

/** @typedef {{ resolve: (value?: any) => void, reject: (error: Error) => void }} Waiter */
/** @typedef {{ topic: string, payloads: Uint8Array[], size: number, waiters: Waiter[], number: number, asking?: Waiter }} Pile */
/** @typedef {{ topic: string, waiter: Waiter, kind: number, isFree: boolean }} Question */

export class Outbox {
  #budget;
  /** @type {(Pile | Question)[]} */
  #unsent = [];
  #unsentBytes = 0;
  /** @type {Pile[]} */
  #underWay = [];
  #underWayBytes = 0;
  #numbers = 0;
  #requests = 0;
  /** @type {Map<number, Waiter>} */
  #asked = new Map();

  /** @param {number} budget bytes published and not taken, before publishers wait */
  constructor(budget) {
    this.#budget = budget;
  }

  get hasRoom() {
    return this.#unsentBytes + this.#underWayBytes < this.#budget;
  }

  get isEmpty() {
    return !this.#unsent.length && !this.#underWay.length;
  }

  /** Messages that no node is known to have taken. */
  get left() {
    let count = 0;
    for (const one of [...this.#unsent, ...this.#underWay]) count += "payloads" in one ? one.payloads.length : 0;
    return count;
  }

  /**
   * Put at the end; with what is there already where that makes one frame.
   * @param {string} topic
   * @param {Uint8Array} payload
   * @param {Waiter} [waiter] told when the node has taken it
   */
  publish(topic, payload, waiter) {
    const size = weight(payload);
    let pile = this.#unsent.at(-1);
    if (!pile || !("payloads" in pile) || !fits(pile, topic, size)) {
      pile = { topic, payloads: [], size: 0, waiters: [], number: 0 };
      this.#unsent.push(pile);
    }
    pile.payloads.push(payload);
    pile.size += size;
    if (waiter) pile.waiters.push(waiter);
    this.#unsentBytes += size;
  }

  /**
   * A question: a frame of its own.
   * @param {string} topic @param {Uint8Array} payload
   * @param {Waiter} asking told whether there is anybody it is for, or why it was not published
   */
  publishQuestion(topic, payload, asking) {
    const size = weight(payload);
    this.#unsent.push({ topic, payloads: [payload], size, waiters: [], number: 0, asking });
    this.#unsentBytes += size;
  }

  /** @param {string} topic @param {Waiter} waiter told when everything published on the topic so far is stable */
  askStable(topic, waiter) {
    this.#unsent.push({ topic, waiter, kind: AWAIT_STABLE, isFree: false });
  }

  /**
   * @param {string} topic @param {Waiter} waiter told when everything published on the topic so far is on the node's disk
   * @param {boolean} onlyAsk or whether that could be
   */
  askDurable(topic, waiter, onlyAsk) {
    this.#unsent.push({ topic, waiter, kind: AWAIT_DURABLE, isFree: onlyAsk });
  }

  /** @returns {any[][]} what may be sent now, in order */
  take() {
    const messages = [];
    while (this.#unsent.length) {
      const first = this.#unsent[0];
      if (!("payloads" in first)) {
        this.#asked.set(++this.#requests, first.waiter);
        const question = [first.kind, this.#requests, first.topic];
        messages.push(first.kind === AWAIT_DURABLE ? [...question, first.isFree] : question);
      } else if (this.#underWayBytes && this.#underWayBytes + first.size > CREDIT) break;
      else messages.push(this.#send(first));
      this.#unsent.shift();
    }
    return messages;
  }

  /** @param {Pile} pile */
  #send(pile) {
    pile.number = ++this.#numbers;
    this.#underWay.push(pile);
    this.#underWayBytes += pile.size;
    this.#unsentBytes -= pile.size;
    const message = [PUBLISH, pile.number, pile.topic, pile.payloads];
    if (!pile.asking) return message;
    this.#asked.set(++this.#requests, pile.asking);
    return [...message, this.#requests];
  }

  /**
   * The node has everything up to this number, except for the one with this very number when it was refused.
   * @param {number} number @param {string | null} [refused]
   * @returns {boolean} was somebody told of the refusal?
   */
  taken(number, refused) {
    let told = false;
    while (this.#underWay.length && this.#underWay[0].number <= number) {
      const pile = this.#underWay.shift();
      this.#underWayBytes -= pile.size;
      const isRefused = Boolean(refused) && pile.number === number;
      told ||= isRefused && pile.waiters.length > 0;
      for (const waiter of pile.waiters) isRefused ? waiter.reject(new BadInput(refused)) : waiter.resolve();
    }
    return told;
  }

  /** The answer to a question. @param {number} request @param {Error | null} error @param {any} [value] */
  answered(request, error, value) {
    const waiter = this.#asked.get(request);
    this.#asked.delete(request);
    if (error) waiter?.reject(error);
    else waiter?.resolve(value);
  }

  /** @param {string} reason @returns {{ messages: number, topics: string[] }} what may or may not have arrived */
  connectionLost(reason) {
    const error = new OutcomeUnknown(reason);
    const lost = this.#underWay;
    for (const waiter of [...lost.flatMap((pile) => pile.waiters), ...this.#asked.values()]) waiter.reject(error);
    this.#underWay = [];
    this.#underWayBytes = this.#numbers = 0;
    this.#asked.clear();
    this.#rejectOrphans(error);
    const topics = [...new Set(lost.map((pile) => pile.topic))];
    return { messages: lost.reduce((sum, pile) => sum + pile.payloads.length, 0), topics };
  }

  /** Questions about topics of which nothing waits any more are about what was lost. @param {Error} error */
  #rejectOrphans(error) {
    const kept = new Set();
    this.#unsent = this.#unsent.filter((one) => {
      if ("payloads" in one) kept.add(one.topic);
      else if (!one.isFree && !kept.has(one.topic)) {
        one.waiter.reject(error);
        return false;
      }
      return true;
    });
  }

  /** What was not sent was not published; of what was sent nobody knows. @param {Error} error */
  close(error) {
    const unpublished = new Closed(`${error.message}. Nothing was published`);
    const unknown = new OutcomeUnknown(`${error.message}; it may have been published`);
    // In this order: the first rejection of one that waits for several things counts.
    for (const one of this.#unsent) {
      for (const waiter of "payloads" in one ? one.waiters : []) waiter.reject(unpublished);
    }
    const sent = [...this.#asked.values(), ...this.#underWay.flatMap((pile) => pile.waiters)];
    for (const waiter of sent) waiter.reject(unknown);
    for (const one of this.#unsent) {
      if (!("payloads" in one)) one.waiter.reject(one.isFree ? unpublished : unknown);
    }
    this.#unsent = this.#underWay = [];
    this.#unsentBytes = this.#underWayBytes = 0;
    this.#asked.clear();
  }
}

/** @param {Pile} pile @param {string} topic @param {number} size */
function fits(pile, topic, size) {
  return !pile.asking && pile.topic === topic && pile.size + size <= MOST_BYTES && pile.payloads.length < MOST_MESSAGES;
}

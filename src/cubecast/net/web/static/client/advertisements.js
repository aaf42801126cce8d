/** What a client promised to publish, told to each node it talks to. For protocols with brokers. */

import { BadInput, errorOf } from "./errors.js";
import { ADVERTISE } from "./wire.js";

export class Advertisements {
  #send;
  /** @type {Map<string, string | null>} by topic, what was promised and taken */
  #made = new Map();
  /** @type {Map<number, { asked: any[], resolve: (value?: any) => void, reject: (error: Error) => void }>} */
  #open = new Map();
  #numbers = 0;

  /** @param {(message: any[]) => void} send */
  constructor(send) {
    this.#send = send;
  }

  /** @param {string} topic @param {string | null} where @param {boolean} ends @returns {Promise<void>} */
  ask(topic, where, ends) {
    if (typeof topic !== "string" || !topic) throw new BadInput("a topic is text");
    if (where !== null && typeof where !== "string") throw new BadInput("what is promised is a filter, as text");
    return new Promise((resolve, reject) => {
      const asked = [ADVERTISE, ++this.#numbers, topic, where, ends];
      this.#open.set(this.#numbers, { asked, resolve, reject });
      this.#send(asked);
    });
  }

  /** @param {number} request @param {[string, string] | null} [failure] */
  onAdvertised(request, failure) {
    const waiter = this.#open.get(request);
    if (!waiter) return;
    this.#open.delete(request);
    const error = errorOf(failure ?? null);
    if (error) return waiter.reject(error);
    const [, , topic, where, ends] = waiter.asked;
    if (ends) this.#made.delete(topic);
    else this.#made.set(topic, where);
    waiter.resolve();
  }

  /** At a node that knows nothing of them. What others promised of the same topic there stays. */
  openAll() {
    for (const [topic, where] of this.#made) this.#send([ADVERTISE, ++this.#numbers, topic, where, false]);
    for (const { asked } of this.#open.values()) this.#send(asked);
  }

  /** @param {Error} error */
  fail(error) {
    for (const { reject } of this.#open.values()) reject(error);
    this.#open.clear();
  }
}

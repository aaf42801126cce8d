/** What a client asks its node about itself; asked again at the next one when the first is lost. */

import { CubecastError } from "./errors.js";
import { STATUS_REQUEST } from "./wire.js";

export class StatusQuestions {
  #send;
  /** @type {Map<number, { resolve: (status: Record<string, any>) => void, reject: (error: Error) => void }>} */
  #open = new Map();
  #numbers = 0;

  /** @param {(message: any[]) => void} send */
  constructor(send) {
    this.#send = send;
  }

  /** @returns {Promise<Record<string, any>>} */
  ask() {
    return new Promise((resolve, reject) => {
      const request = ++this.#numbers;
      this.#open.set(request, { resolve, reject });
      this.#send([STATUS_REQUEST, request]);
    });
  }

  /** @param {number} request @param {Record<string, any>} status */
  onReply(request, status) {
    const waiter = this.#open.get(request);
    this.#open.delete(request);
    if (typeof status.error === "string") waiter?.reject(new CubecastError(status.error));
    else waiter?.resolve(status);
  }

  openAll() {
    for (const request of this.#open.keys()) this.#send([STATUS_REQUEST, request]);
  }

  /** @param {Error} error */
  fail(error) {
    for (const waiter of this.#open.values()) waiter.reject(error);
    this.#open.clear();
  }
}

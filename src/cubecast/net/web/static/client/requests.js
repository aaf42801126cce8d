/**
 * Questions and answers on top of publications, the same as the Python package's.
 *
 * Whoever asks names the topic of its own inbox and the question in the headers; whoever answers publishes there, and
 * nowhere but in inboxes. Every responder that is subscribed may answer; the first answer counts.
 */

import { BadInput, Closed, NoResponder, RemoteProtocolError, RequestFailed } from "./errors.js";

const REPLY_TO = "reply-to";
const CORRELATION = "correlation";
const FAILURE = "failure";
const INBOX = "_inbox.";

/** @typedef {import("./client.js").Client} Client */
/** @typedef {import("./events.js").Message} Message */
/** @typedef {import("./subscription.js").Subscription} Subscription */

/** Not to be guessed, so that nobody answers who was not asked. */
function unguessable() {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {Message} message @returns {Record<string, any>} none when it is garbled */
function headersOf(message) {
  try {
    return message.headers;
  } catch (error) {
    if (error instanceof RemoteProtocolError) return {};
    throw error;
  }
}

/** @param {Record<string, any>} headers */
const isRequest = (headers) => String(headers[REPLY_TO] ?? "").startsWith(INBOX);

/** The inbox of a client, opened with its first question. */
export class Requests {
  #client;
  #topic = INBOX + unguessable();
  /** @type {Map<string, { resolve: (message: Message) => void, reject: (error: Error) => void }>} */
  #open = new Map();
  /** @type {Subscription | null} */
  #inbox = null;

  /** @param {Client} client */
  constructor(client) {
    this.#client = client;
  }

  /** @param {string} topic @param {any} data @param {Record<string, import("./envelope.js").HeaderValue>} headers @param {number} timeout */
  async ask(topic, data, headers, timeout) {
    const question = unguessable();
    const late = new DOMException(`nobody answered on ${topic} for ${timeout} ms`, "TimeoutError");
    let timer;
    const answer = new Promise((resolve, reject) => {
      this.#open.set(question, { resolve, reject });
      timer = setTimeout(() => reject(late), timeout);
    });
    try {
      const asked = this.#publish(topic, data, { ...headers, [REPLY_TO]: this.#topic, [CORRELATION]: question });
      await Promise.race([asked, answer]);
      const message = await answer;
      const failure = headersOf(message)[FAILURE];
      if (failure !== undefined) throw new RequestFailed(failure);
      return message;
    } finally {
      clearTimeout(timer);
      this.#open.delete(question);
    }
  }

  /** @param {string} topic @param {any} data @param {Record<string, import("./envelope.js").HeaderValue>} headers */
  async #publish(topic, data, headers) {
    if (!this.#inbox || this.#inbox.closed) {
      this.#inbox = this.#client.subscribe(this.#topic, { gaps: "ignore" });
      this.#read(this.#inbox);
    }
    await this.#inbox.ready;
    const waiting = this.#open.get(headers[CORRELATION]);
    if (!waiting) return;
    const asking = {
      resolve: (anybody) => anybody || waiting.reject(new NoResponder(`${topic}: nobody is subscribed, so nobody answers`)),
      // After a broken connection an answer may still come.
      reject: (error) => error instanceof BadInput && waiting.reject(error),
    };
    await this.#client.publish(topic, data, { headers, asking });
  }

  /** @param {Subscription} inbox */
  async #read(inbox) {
    try {
      for await (const message of inbox) this.#open.get(headersOf(message)[CORRELATION])?.resolve(message);
    } catch {
      // Whoever asks next opens it again, and learns then why that cannot be.
    }
  }

  /** @param {Error} error */
  close(error) {
    for (const { reject } of this.#open.values()) reject(error);
  }
}

/**
 * @param {Client} client @param {Message} message @param {any} data @param {string} [failure] why there is no answer
 * @returns {Promise<void>}
 */
export async function answer(client, message, data, failure) {
  const found = message.headers;
  if (!isRequest(found)) {
    throw new BadInput(`message ${message.id} on ${message.topic} is not a request: it names no inbox to reply to`);
  }
  const headers = { [CORRELATION]: found[CORRELATION] ?? "" };
  if (failure !== undefined) headers[FAILURE] = failure;
  await client.publish(String(found[REPLY_TO]), data ?? null, { headers });
}

/** Answers requests with a function's results, one after the other, until closed. */
export class Service {
  #client;
  #subscription;
  #handler;

  /** @param {Client} client @param {Subscription} subscription @param {(message: Message) => any} handler */
  constructor(client, subscription, handler) {
    this.#client = client;
    this.#subscription = subscription;
    this.#handler = handler;
    /** Done when questions asked from now on are answered. @type {Promise<void>} */
    this.ready = subscription.ready;
    /** Done when nobody is answered any more, with the error that ended it or undefined. */
    this.ended = subscription.ended;
    this.#serve();
  }

  async #serve() {
    try {
      for await (const message of this.#subscription) {
        if (isRequest(headersOf(message))) await this.#answer(message);
      }
    } catch {
      this.close(); // what ended the subscription, or the client, is told by `ended`
    }
  }

  /** @param {Message} message */
  async #answer(message) {
    try {
      await answer(this.#client, message, await this.#handler(message));
    } catch (error) {
      if (error instanceof Closed) throw error;
      // Whatever the handler does wrong is told to the one who asked; the service goes on.
      await this.#fail(message, `${error?.name ?? "Error"}: ${error?.message ?? error}`);
    }
  }

  /** @param {Message} message @param {string} failure */
  async #fail(message, failure) {
    try {
      await answer(this.#client, message, null, failure);
    } catch (error) {
      if (error instanceof Closed) throw error;
      console.error(`a request on ${message.topic} is left without an answer: ${error.message}`);
    }
  }

  close() {
    this.#subscription.close();
  }
}

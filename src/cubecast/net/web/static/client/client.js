/**
 * The client: a thin one, whose node is at the other end of a WebSocket and is looked for again when it is lost.
 *
 * When the connection breaks, the client goes on at the same address or another one it was given. Each subscription is
 * told of a gap, because nobody can know what was published in between, and of another one when it is complete again.
 * What is delivered twice because of that is left out. Publications that were certainly not sent go out later; of those
 * that may have been sent the outcome is unknown, which the event `uncertain` tells.
 */

import { Advertisements } from "./advertisements.js";
import { BadInput, Closed, CubecastError, errorOf, NoRoom, OutcomeUnknown } from "./errors.js";
import { seal } from "./envelope.js";
import { dial, endpoints } from "./dialling.js";
import { Outbox } from "./outbox.js";
import { answer, Requests, Service } from "./requests.js";
import { soon } from "./soon.js";
import { StatusQuestions } from "./status.js";
import { Subscription } from "./subscription.js";
import {
  ADVERTISED,
  CAUGHT_UP,
  DELIVER,
  DURABLE,
  ENDED,
  LOST,
  MAX_PAYLOAD,
  REACHES,
  READY,
  RESUMED,
  STABLE,
  STANDING,
  STATUS_REPLY,
  TAKEN,
} from "./wire.js";

const BUDGET = 4 << 20;
const MOST_WAITING = 10000;
const WAITS = [undefined, "taken", "durable", "stable"];

/**
 * @typedef {object} ConnectOptions
 * @property {string} [token] proves who you are; it travels in the first message, never in the address
 * @property {string} [name] who you are, for people who look at the node
 * @property {string} [cluster] the cluster's name, to be refused by nodes of another one
 * @property {number} [timeout] milliseconds to look for a node at first, 5000
 * @property {number} [patience] milliseconds without any node after which the client gives up, 60000
 */

/**
 * @typedef {{ headers?: Record<string, import("./envelope.js").HeaderValue>, wait?: "taken" | "durable" | "stable",
 *   asking?: import("./outbox.js").Waiter }} PublishOptions `asking` is for `request`: told whether anybody is subscribed
 */
/** @typedef {"connected" | "looking" | "closed"} State */

/**
 * Events: `state` (detail: the state), `uncertain` (detail: `{messages, topics}`, of which nobody knows whether they were
 * published), `refused` (detail: why a publication nobody waited for was refused).
 */
export class Client extends EventTarget {
  #urls;
  #options;
  /** @type {import("./connection.js").Connection | null} */
  #connection = null;
  #giveUp = new AbortController();
  /** @type {Map<number, Subscription>} */
  #subscriptions = new Map();
  #numbers = 0;
  #outbox = new Outbox(BUDGET);
  /** @type {(() => void)[]} publications that wait for room, in order */
  #waiting = [];
  #isDirty = false;
  #status = new StatusQuestions((message) => this.#send(message));
  #questions = new Requests(this);
  #advertisements = new Advertisements((message) => this.#send(message));
  /** Called when nothing that was published waits any more. */
  #onDrained = () => {};
  /** @type {CubecastError | null} */
  #closed = null;
  /** @type {State} */
  #state = "looking";

  /** @param {string[]} urls @param {ConnectOptions} options */
  constructor(urls, options) {
    super();
    this.#urls = urls;
    this.#options = options;
  }

  /** @returns {State} */
  get state() {
    return this.#state;
  }

  /** The node in use: `{node, incarnation, dimension, version}`, or null while none is. */
  get node() {
    return this.#connection?.node ?? null;
  }

  // Publishing

  /**
   * Resolves when there is room for it, with `wait: "taken"` when the node has it, with `wait: "durable"` when the node
   * has it on its disk, with `wait: "stable"` when it reached everybody it is for. Throws BadInput when it can never be published; OutcomeUnknown when nobody can know.
   * @param {string} topic
   * @param {any} data bytes, text, or what JSON can say
   * @param {PublishOptions} [options]
   * @returns {Promise<void>}
   */
  async publish(topic, data, { headers, wait, asking } = {}) {
    if (typeof topic !== "string" || !topic) throw new BadInput("a topic is text");
    if (!WAITS.includes(wait)) throw new BadInput(`wait is "taken", "durable" or "stable", not ${wait}`);
    const sealed = seal(data, headers);
    if (sealed.length > MAX_PAYLOAD) {
      throw new BadInput(`a message of ${sealed.length} bytes; at most ${MAX_PAYLOAD} are possible`);
    }
    this.#checkOpen();
    if (this.#waiting.length >= MOST_WAITING) throw new NoRoom(`${MOST_WAITING} publications wait for room already`);
    if (wait === "durable") await this.#checkLogged(topic);
    await new Promise((resolve, reject) => {
      const accept = () => {
        if (this.#closed) return reject(this.#closed);
        // A refusal must not look like success to who waits for stability, so that waits for both.
        const taken = wait ? { resolve: wait === "taken" ? resolve : () => {}, reject } : undefined;
        if (asking) this.#outbox.publishQuestion(topic, sealed, asking);
        else this.#outbox.publish(topic, sealed, taken);
        if (wait === "stable") this.#outbox.askStable(topic, { resolve, reject });
        if (wait === "durable") this.#outbox.askDurable(topic, { resolve, reject }, false);
        if (!wait) resolve(undefined);
        this.#flushSoon();
      };
      if (this.#waiting.length || !this.#outbox.hasRoom) this.#waiting.push(accept);
      else accept();
    });
  }

  /** Done when everything published here on the topic reached everybody it is for. @param {string} topic */
  stable(topic) {
    this.#checkOpen();
    return new Promise((resolve, reject) => {
      this.#outbox.askStable(topic, { resolve, reject });
      this.#flushSoon();
    });
  }

  /**
   * Promise that whatever is published on the topic through this node matches the filter; what does not is then refused.
   * For protocols with brokers: subscriptions find the way before the first message.
   * @param {string} topic @param {string} [where]
   */
  async advertise(topic, where) {
    this.#checkOpen();
    this.#flush();
    await this.#advertisements.ask(topic, where ?? null, false);
  }

  /** Take the promise back, with all that was published. @param {string} topic */
  async unadvertise(topic) {
    this.#checkOpen();
    this.#flush();
    await this.#advertisements.ask(topic, null, true);
  }

  /** Nothing is published that could never be what was asked for. @param {string} topic */
  #checkLogged(topic) {
    return new Promise((resolve, reject) => {
      this.#outbox.askDurable(topic, { resolve, reject }, true);
      this.#flushSoon();
    });
  }

  #flushSoon() {
    if (this.#isDirty) return;
    this.#isDirty = true;
    soon(() => this.#flush());
  }

  #flush() {
    this.#isDirty = false;
    if (!this.#connection) return;
    for (const message of this.#outbox.take()) this.#send(message);
  }

  #makeRoom() {
    while (this.#waiting.length && this.#outbox.hasRoom) this.#waiting.shift()();
  }

  // Subscribing and asking

  /**
   * @param {string} pattern a topic; `*` stands for one word, a final `>` for one or more
   * @param {import("./subscription.js").SubscriptionOptions} [options]
   * @returns {Subscription}
   */
  subscribe(pattern, options = {}) {
    this.#checkOpen();
    if (typeof pattern !== "string" || !pattern) throw new BadInput("a pattern is text");
    const number = ++this.#numbers;
    const client = {
      send: (message) => this.#send(message),
      forget: (which) => this.#subscriptions.delete(which),
    };
    const subscription = new Subscription(number, pattern, options, client);
    this.#subscriptions.set(number, subscription);
    subscription.open();
    return subscription;
  }

  /** What the node says about itself and its cluster. @returns {Promise<Record<string, any>>} */
  status() {
    this.#checkOpen();
    return this.#status.ask();
  }

  /**
   * Publish a question and wait for the first answer. RequestFailed when the handler threw, NoResponder at once when
   * nobody is subscribed to the topic, a DOMException named TimeoutError when nobody answers in time.
   * @param {string} topic
   * @param {any} data
   * @param {{ headers?: Record<string, import("./envelope.js").HeaderValue>, timeout?: number }} [options] 5000 milliseconds
   * @returns {Promise<import("./events.js").Message>}
   */
  request(topic, data, { headers = {}, timeout = 5000 } = {}) {
    return this.#questions.ask(topic, data, headers, timeout);
  }

  /** Answer a message that was sent with `request`. @param {import("./events.js").Message} message @param {any} data */
  reply(message, data) {
    return answer(this, message, data);
  }

  /**
   * Answer each request with what the handler returns, or what its promise does; until the service or the client closes.
   * @param {string} pattern
   * @param {(message: import("./events.js").Message) => any} handler
   * @param {{ where?: string }} [options] a filter: only requests whose headers match are answered
   */
  serve(pattern, handler, { where } = {}) {
    if (typeof handler !== "function") throw new BadInput("a handler is a function");
    return new Service(this, this.subscribe(pattern, { gaps: "ignore", where }), handler);
  }

  // The connection

  /** Find a node. BadInput with the reasons when none answers. */
  async start() {
    try {
      await this.#connect(this.#options.timeout ?? 5000);
    } catch (error) {
      this.#shut(error);
      throw error;
    }
    return this;
  }

  /** @param {number} patience */
  async #connect(patience) {
    const listener = { onMessage: (message) => this.#onMessage(message), onLost: (reason) => this.#onLost(reason) };
    const connection = await dial(this.#urls, this.#options, listener, patience, this.#giveUp.signal);
    if (this.#closed) return connection.close();
    this.#connection = connection;
    this.#advertisements.openAll();
    for (const subscription of this.#subscriptions.values()) subscription.open();
    this.#status.openAll();
    this.#flush();
    this.#become("connected");
  }

  /** @param {string} reason */
  async #onLost(reason) {
    const before = this.#connection?.label;
    this.#connection = null;
    const uncertain = this.#outbox.connectionLost(`the connection to ${before} broke before the answer came; it may have been published`);
    if (uncertain.messages) this.#tell("uncertain", uncertain);
    this.#makeRoom();
    this.#checkDrained();
    this.#become("looking");
    for (const subscription of this.#subscriptions.values()) subscription.onMoved(`lost ${before} (${reason})`);
    try {
      await this.#connect(this.#options.patience ?? 60000);
    } catch (error) {
      if (!this.#closed) this.#shut(new OutcomeUnknown(`${before} is lost and no node answered: ${error.message}`));
    }
  }

  /** @param {any[]} message */
  #send(message) {
    this.#connection?.send(message);
  }

  /** @param {any[]} message */
  #onMessage([kind, number, ...rest]) {
    const subscription = this.#subscriptions.get(number);
    switch (kind) {
      case DELIVER:
        return subscription?.onDeliver(...rest);
      case READY:
        return subscription?.onReady();
      case LOST:
        return subscription?.onGap(...rest);
      case ENDED:
        if (subscription?.goesOnLive()) return;
        this.#subscriptions.delete(number);
        return subscription?.onEnded(errorOf([rest[1] ?? "BadInput", rest[0]]) ?? undefined);
      case ADVERTISED:
        return this.#advertisements.onAdvertised(number, rest[0]);
      case TAKEN:
        return this.#onTaken(number, rest[0]);
      case STABLE:
        return this.#outbox.answered(number, rest[0] ? new (rest[1] ? BadInput : OutcomeUnknown)(rest[0]) : null);
      case DURABLE:
        return this.#outbox.answered(number, errorOf(rest[0]));
      case REACHES:
        return this.#outbox.answered(number, errorOf(rest[1]), rest[0]);
      case STANDING:
        return subscription?.onStanding(rest[0]);
      case CAUGHT_UP:
        return subscription?.onCaughtUp();
      case RESUMED:
        return subscription?.onResumed(rest[0]);
      case STATUS_REPLY:
        return this.#status.onReply(number, rest[0]);
    }
  }

  /** @param {number} number @param {string | null} refused */
  #onTaken(number, refused) {
    const told = this.#outbox.taken(number, refused);
    if (refused && !told) this.#tell("refused", refused);
    this.#flush();
    this.#makeRoom();
    this.#checkDrained();
  }

  // The end

  #checkOpen() {
    if (this.#closed) throw this.#closed;
  }

  /** Let what was published reach a node, then go. OutcomeUnknown when it does not get there in time. */
  async close(timeout = 5000) {
    if (this.#closed) return;
    for (const subscription of [...this.#subscriptions.values()]) subscription.close();
    await new Promise((resolve) => {
      this.#onDrained = () => resolve(undefined);
      setTimeout(resolve, timeout);
      this.#checkDrained();
    });
    const left = this.#outbox.left + this.#waiting.length;
    this.#shut(new Closed("this client is closed"));
    if (left) throw new OutcomeUnknown(`closed while ${left} messages were not known to have reached a node`);
  }

  #checkDrained() {
    if (this.#closed || (this.#outbox.isEmpty && !this.#waiting.length)) this.#onDrained();
  }

  /** @param {CubecastError} error */
  #shut(error) {
    this.#closed = error instanceof OutcomeUnknown ? new Closed(error.message) : error;
    this.#giveUp.abort();
    this.#connection?.close();
    this.#connection = null;
    const ended = error instanceof Closed ? undefined : error;
    for (const subscription of this.#subscriptions.values()) subscription.onEnded(ended);
    this.#subscriptions.clear();
    this.#outbox.close(error);
    for (const accept of this.#waiting.splice(0)) accept();
    this.#questions.close(error);
    this.#advertisements.fail(error);
    this.#status.fail(error);
    this.#onDrained();
    this.#become("closed");
  }

  /** @param {State} state */
  #become(state) {
    this.#state = state;
    this.#tell("state", state);
  }

  /** @param {string} name @param {any} detail */
  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

/**
 * A client of a node.
 * @param {string | string[]} [url] where, `ws://`, `wss://` or relative; several to have a choice when one is lost;
 *   without, `/ws` at the server this page came from
 * @param {ConnectOptions} [options]
 * @returns {Promise<Client>}
 */
export function connect(url = "/ws", options = {}) {
  return new Client(endpoints(url, options.token), options).start();
}

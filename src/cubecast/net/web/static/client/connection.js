/** One WebSocket to one node: the greeting, messages both ways, signs of life. */

import { BadInput, CubecastError, RemoteProtocolError } from "./errors.js";
import { decodeAll, encode } from "./messagepack.js";
import { PING, VERSION } from "./wire.js";

const GREETING_TIME = 5000;
const PING_EVERY = 2000;
const SILENT_FOR = 6000;

/** A node's refusal that asking again may change. */
export class NotNow extends CubecastError {}

/** @typedef {{ cluster?: string, name?: string, token?: string }} Identity */
/** @typedef {{ onMessage: (message: any[]) => void, onLost: (reason: string) => void }} Listener */

export class Connection {
  #socket;
  #listener;
  #heart;
  /** @type {number | null} when a ping was sent that nothing was heard after */
  #asked = null;
  #isLost = false;

  /** @param {WebSocket} socket @param {any[]} accepted @param {Listener} listener */
  constructor(socket, accepted, listener) {
    this.#socket = socket;
    this.#listener = listener;
    const [, version, [node, incarnation], dimension] = accepted;
    /** Who is at the other end. */
    this.node = { version, node, incarnation, dimension };
    this.label = `node ${node}`;
    socket.onmessage = (event) => this.#received(event.data);
    socket.onclose = (event) => this.#lost(event.reason || `${this.label} hung up`);
    socket.onerror = null;
    this.#heart = setInterval(() => this.#beat(), PING_EVERY);
  }

  /** @param {any[]} message */
  send(message) {
    if (!this.#isLost) this.#socket.send(encode(message));
  }

  close() {
    this.#stop();
    this.#socket.close(1000);
  }

  /** @param {ArrayBuffer | string} data */
  #received(data) {
    this.#asked = null;
    try {
      if (!(data instanceof ArrayBuffer)) throw new RemoteProtocolError("a WebSocket message that is not binary");
      for (const message of decodeAll(new Uint8Array(data))) {
        if (this.#isLost) return;
        if (!Array.isArray(message)) throw new RemoteProtocolError("no message of a gateway");
        this.#listener.onMessage(message);
      }
    } catch (error) {
      if (!(error instanceof CubecastError)) throw error;
      this.#lost(`${this.label} does not speak our language: ${error.message}`);
    }
  }

  /** A page that is hidden wakes rarely, so what counts is a ping without any answer, not the time since the last word. */
  #beat() {
    const now = performance.now();
    if (this.#asked === null) this.#asked = now;
    else if (now - this.#asked > SILENT_FOR) return this.#lost(`${this.label} said nothing for ${SILENT_FOR} ms`);
    this.send([PING]);
  }

  #stop() {
    this.#isLost = true;
    clearInterval(this.#heart);
    this.#socket.onmessage = this.#socket.onclose = null;
  }

  /** @param {string} reason */
  #lost(reason) {
    if (this.#isLost) return;
    this.#stop();
    this.#socket.close();
    this.#listener.onLost(reason);
  }
}

/**
 * Call a node and greet it.
 * @param {string} url @param {Identity} identity @param {Listener} listener @param {AbortSignal} signal
 * @returns {Promise<Connection>} BadInput when it refuses for good, NotNow when it may be asked again
 */
export function call(url, identity, listener, signal) {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    /** @param {Error} error */
    const give = (error) => {
      settle();
      socket.close();
      reject(error);
    };
    const timer = setTimeout(() => give(new NotNow("no answer")), GREETING_TIME);
    const abort = () => give(new NotNow("given up"));
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      socket.onopen = socket.onmessage = socket.onerror = socket.onclose = null;
    };
    signal.addEventListener("abort", abort);
    socket.onopen = () => socket.send(greeting(identity));
    socket.onerror = () => give(new NotNow("no connection"));
    socket.onclose = (event) => give(new NotNow(event.reason || "no connection"));
    socket.onmessage = (event) => {
      try {
        const [answer, ...early] = answers(event.data);
        settle();
        const connection = new Connection(socket, answer, listener);
        resolve(connection);
        // After whoever called has it: nothing is served yet, so there is nothing but noise in here.
        queueMicrotask(() => early.forEach((message) => listener.onMessage(message)));
      } catch (error) {
        give(error);
      }
    };
  });
}

/** @param {Identity} identity */
function greeting({ cluster = "", name = "", token = null }) {
  return encode(["client", "cubecast", VERSION, VERSION, cluster, name, token]);
}

/** @param {ArrayBuffer} data @returns {any[]} */
function answers(data) {
  const found = data instanceof ArrayBuffer ? decodeAll(new Uint8Array(data)) : [];
  const [answer] = found;
  if (Array.isArray(answer) && answer[0] === "refused") {
    throw answer[2] ? new NotNow(answer[1]) : new BadInput(answer[1]);
  }
  if (!Array.isArray(answer) || answer[0] !== "accepted") throw new RemoteProtocolError("no answer of a cubecast node");
  return found;
}

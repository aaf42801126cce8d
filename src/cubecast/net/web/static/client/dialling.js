/** Finding a node that answers, among several, without storming any of them. */

import { BadInput } from "./errors.js";
import { call } from "./connection.js";

const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 2000;
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** @param {string | string[]} given @param {string} [token] @returns {string[]} */
export function endpoints(given, token) {
  const urls = (Array.isArray(given) ? given : [given]).map((one) => endpoint(one));
  if (!urls.length) throw new BadInput("a client needs the address of at least one node");
  if (token && urls.some((url) => url.protocol === "ws:" && !LOOPBACK.test(url.hostname))) {
    throw new BadInput("a token does not cross a network in the clear: use wss");
  }
  return urls.map((url) => url.href);
}

/** @param {string} given @returns {URL} */
function endpoint(given) {
  let url;
  try {
    url = new URL(given, globalThis.location?.href);
  } catch {
    throw new BadInput(`${given} is no address; write for example wss://example.org:8443/ws`);
  }
  if (url.username || url.password || url.search) throw new BadInput("secrets belong into `token`, not into an address");
  url.protocol = url.protocol.replace(/^http/, "ws");
  if (!/^wss?:$/.test(url.protocol)) throw new BadInput(`${given} is no WebSocket address`);
  if (url.pathname === "/") url.pathname = "/ws";
  url.hash = "";
  return url;
}

/**
 * The first that answers; after a round without success it pauses, longer each time, by a random share.
 * @param {string[]} urls
 * @param {import("./connection.js").Identity} identity
 * @param {import("./connection.js").Listener} listener
 * @param {number} patience milliseconds
 * @param {AbortSignal} signal
 * @returns {Promise<import("./connection.js").Connection>} BadInput with the reasons when nobody did
 */
export async function dial(urls, identity, listener, patience, signal) {
  const deadline = performance.now() + patience;
  let pause = FIRST_PAUSE;
  for (;;) {
    const reasons = [];
    let isHopeless = true;
    for (const url of urls) {
      try {
        return await call(url, identity, listener, signal);
      } catch (error) {
        isHopeless &&= error instanceof BadInput;
        reasons.push(`${url}: ${error.message}`);
      }
    }
    const left = deadline - performance.now();
    if (left <= 0 || isHopeless || signal.aborted) throw new BadInput(reasons.join("; "));
    await pauseFor(Math.min(left, pause * (0.5 + Math.random() / 2)), signal);
    pause = Math.min(2 * pause, LONGEST_PAUSE);
  }
}

/** @param {number} milliseconds @param {AbortSignal} signal */
function pauseFor(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve(undefined)), { once: true });
  });
}

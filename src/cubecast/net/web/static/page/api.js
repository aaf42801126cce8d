/** Asking the node. A token, when one is needed, is kept for this tab only and travels in a header. */

import { parsed } from "./ids.js";

const KEY = "cubecast-token";
const TIMEOUT = 4000;

/** The node wants to know who asks. */
export class TokenNeeded extends Error {}

/** @param {string} token */
export function remember(token) {
  sessionStorage.setItem(KEY, token);
}

/** @param {string} path @param {Record<string, any>} [parameters] @returns {Promise<any>} */
export async function ask(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== "");
  const query = given.length ? `?${new URLSearchParams(given)}` : "";
  const token = sessionStorage.getItem(KEY);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(`./api/${path}.json${query}`, { headers, signal: AbortSignal.timeout(TIMEOUT) });
  if (answer.status === 401) throw new TokenNeeded((await answer.text()).trim());
  const said = parsed(await answer.text());
  if (!answer.ok) throw new Error(said.error ?? answer.statusText);
  return said;
}

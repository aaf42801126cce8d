/**
 * What a page publishes ↔ the bytes a node carries; byte for byte what the Python package writes and reads.
 *
 * Plain bytes travel as they are. Anything else opens with a mark and a byte that says how the rest is to be read; so do
 * bytes that happen to begin with the mark, and empty ones. In front of all this may be the name of the client that
 * published it, put there by its node where security is enabled.
 */

import { BadInput, RemoteProtocolError } from "./errors.js";
import { bytesOf, decodeAll, encode, textOf } from "./messagepack.js";

const MARK = 0xc1;
const BYTES = 0;
const TEXT = 1;
const JSON_VALUE = 2;
const HEADED = 3;
const STAMPED = 4;
const LONE_SURROGATE = /[^\\](?:\\\\)*\\ud[89a-f]/;

/** @typedef {string | number | bigint | boolean} HeaderValue what arrives beyond 2^53 is a bigint */
/** @typedef {{ kind: number, headers: Record<string, HeaderValue>, body: Uint8Array }} Opened */

/**
 * @param {any} data bytes (Uint8Array, another view, ArrayBuffer) and text as they are, everything else as JSON
 * @param {Record<string, HeaderValue>} [headers]
 * @returns {Uint8Array}
 */
export function seal(data, headers) {
  const [kind, body] = bodyOf(data);
  const names = headers ? Object.keys(headers) : [];
  if (!names.length) return kind === BYTES && body.length && body[0] !== MARK ? body : marked(kind, body);
  for (const name of names) {
    if (!isValue(headers[name])) throw new BadInput(`headers are text, finite numbers or booleans; ${name} is none`);
  }
  return marked(HEADED, encode([headers, kind, body]));
}

/** @param {number} kind @param {Uint8Array} body */
function marked(kind, body) {
  const sealed = new Uint8Array(body.length + 2);
  sealed[0] = MARK;
  sealed[1] = kind;
  sealed.set(body, 2);
  return sealed;
}

/** @param {any} data @returns {[number, Uint8Array]} */
function bodyOf(data) {
  if (typeof data === "string") return [TEXT, bytesOf(data)];
  // Copied: the page may go on writing into what it gave us.
  if (data instanceof ArrayBuffer) return [BYTES, new Uint8Array(data.slice(0))];
  if (ArrayBuffer.isView(data)) {
    return [BYTES, new Uint8Array(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength))];
  }
  let text;
  try {
    text = JSON.stringify(data);
  } catch (error) {
    throw new BadInput(`this cannot be published: ${error.message}`);
  }
  if (text === undefined) throw new BadInput(`${typeof data} cannot be published`);
  if (LONE_SURROGATE.test(text)) throw new BadInput("text must be valid Unicode");
  return [JSON_VALUE, bytesOf(text)];
}

/** @param {Uint8Array} sealed */
const isStamped = (sealed) => sealed[0] === MARK && sealed[1] === STAMPED;

/** @param {Uint8Array} sealed @returns {string | null} who published it, as the node it came in through says */
export function principalOf(sealed) {
  return isStamped(sealed) ? textOf(sealed.subarray(3, endOfStamp(sealed))) : null;
}

/** @param {Uint8Array} sealed */
function endOfStamp(sealed) {
  const end = 3 + (sealed[2] ?? 0);
  if (end <= 3 || end > sealed.length) throw new RemoteProtocolError("a garbled stamp");
  return end;
}

/** @param {Uint8Array} stamped @returns {Opened} RemoteProtocolError when it is garbled */
export function open(stamped) {
  const sealed = isStamped(stamped) ? stamped.subarray(endOfStamp(stamped)) : stamped;
  if (sealed.length && sealed[0] !== MARK) return { kind: BYTES, headers: {}, body: sealed };
  const kind = sealed[1];
  if (kind === BYTES || kind === TEXT || kind === JSON_VALUE) return { kind, headers: {}, body: sealed.subarray(2) };
  if (kind !== HEADED) throw new RemoteProtocolError(`an envelope of unknown kind ${kind}`);
  const [content, ...more] = decodeAll(sealed.subarray(2));
  if (more.length || !isHeaded(content)) throw new RemoteProtocolError("a garbled envelope");
  return { kind: content[1], headers: { ...content[0] }, body: content[2] };
}

/** @param {any} value */
function isValue(value) {
  return ["string", "boolean"].includes(typeof value) || Number.isFinite(value);
}

/** @param {any} content */
function isHeaded(content) {
  if (!Array.isArray(content) || content.length !== 3) return false;
  const [headers, kind, body] = content;
  const isMap = headers !== null && typeof headers === "object" && !Array.isArray(headers);
  return (
    isMap &&
    Object.values(headers).every((value) => isValue(value) || ["number", "bigint"].includes(typeof value)) &&
    [BYTES, TEXT, JSON_VALUE].includes(kind) &&
    body instanceof Uint8Array
  );
}

/** @param {Uint8Array} sealed @returns {any} what was published, in the type it was published in */
export function dataOf(sealed) {
  const { kind, body } = open(sealed);
  if (kind === BYTES) return body;
  return kind === TEXT ? textOf(body) : jsonOf(body);
}

/** @param {Uint8Array} body @returns {any} */
export function jsonOf(body) {
  try {
    return JSON.parse(textOf(body));
  } catch {
    throw new RemoteProtocolError("the message is not JSON");
  }
}

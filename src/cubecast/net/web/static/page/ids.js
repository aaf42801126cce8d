/**
 * Ids of nodes. They have up to 63 bits, and a number here holds 53 exactly: a longer one is a text of its digits, the
 * same wherever it comes from, so that ids are compared with ===.
 *
 * @typedef {number | string} Id
 */

const LABEL = 4;
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const LONG = /^-?\d{16,}$/;

/** @param {string} digits @returns {Id} */
export function idOf(digits) {
  const number = Number(digits);
  return Number.isSafeInteger(number) ? number : digits;
}

/** @param {string} text JSON @returns {any} with whole numbers that are too long as text */
export function parsed(text) {
  const quoted = (token) => (LONG.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token);
  return JSON.parse(text.replace(TOKEN, quoted));
}

/** @param {Id} id @returns {string} what fits into a circle: of a drawn id the last digits */
export function shortId(id) {
  return String(id).slice(-LABEL);
}

/** Numbers, times and names as people read them. */

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

/** @param {number} number */
export function count(number) {
  return number < 100000 ? grouped.format(number) : short.format(number);
}

/** @param {number} number per second */
export function rate(number) {
  if (number > 0 && number < 10) return number.toFixed(1);
  return count(number);
}

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return `${grouped.format(bytes)} B`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** @param {number | null} seconds */
export function duration(seconds) {
  if (seconds === null) return "–";
  if (seconds === 0) return "0 ms";
  if (seconds < 0.001) return `${(seconds * 1e3).toFixed(2)} ms`;
  if (seconds < 0.1) return `${(seconds * 1e3).toFixed(1)} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1e3)} ms`;
  if (seconds < 90) return `${seconds.toFixed(1)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

/** @param {number | null} seconds since 1970 */
export function time(seconds) {
  return seconds === null ? "–" : clock.format(new Date(seconds * 1000));
}

/** @param {number[]} message [source, incarnation, counter] */
export function messageName([source, incarnation, counter]) {
  return incarnation ? `${source}.${incarnation} #${counter}` : `${source} #${counter}`;
}

/** @param {number} number @param {string} one @param {string} [many] */
export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/**
 * After the present turn of the event loop, with everything that awaits something already done; so what is published in
 * one turn, even one by one and awaited, leaves together. Timers would do too, but are late in pages that are hidden.
 */

const channel = new MessageChannel();
/** @type {(() => void)[]} */
let waiting = [];

channel.port1.onmessage = () => {
  const due = waiting;
  waiting = [];
  for (const action of due) action();
};
/** @type {any} */ (channel.port1).unref?.(); // outside of browsers: an open channel is no reason to go on

/** @param {() => void} action */
export function soon(action) {
  if (!waiting.length) channel.port2.postMessage(null);
  waiting.push(action);
}

/**
 * Errors that say who is at fault, and whether the operation happened. The names are those of the Python package.
 */

/** Base of everything this client throws on purpose. */
export class CubecastError extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = new.target.name;
  }
}

/** You asked for something impossible or not permitted. Nothing was done. */
export class BadInput extends CubecastError {}

/** The other side sent something no correct peer sends. */
export class RemoteProtocolError extends CubecastError {}

/** The way to the answer broke: it may have happened and may not have. Asking again may repeat it. */
export class OutcomeUnknown extends CubecastError {}

/** The node that has it could not write it to its disk. It may have reached others. */
export class NotDurable extends CubecastError {}

/** The node's log cannot tell what a subscription wants to begin with. */
export class NotKept extends BadInput {}

/** The client or subscription is closed. Nothing was done. */
export class Closed extends CubecastError {}

/** The page did not read a subscription in time and was cut off, as its policy says. */
export class SlowConsumer extends CubecastError {}

/** Too many publications wait already. Nothing was done. */
export class NoRoom extends CubecastError {}

/** Messages of a subscription are lost to it; `gap` says which. */
export class Missed extends CubecastError {
  /** @param {import("./events.js").Gap} gap */
  constructor(gap) {
    super(gap.reason);
    this.gap = gap;
  }
}

/** Nobody is subscribed to the topic of a request: it was published and reached nobody. */
export class NoResponder extends CubecastError {}

/** Whoever served the request could not: the text is what its handler threw. */
export class RequestFailed extends CubecastError {}

/** @param {[name: string, text: string] | null} told @returns {CubecastError | null} */
export function errorOf(told) {
  if (!told) return null;
  const [name, text] = told;
  const kinds = { BadInput, NotKept, NotPermitted: BadInput, NotDurable, OutcomeUnknown };
  return new (kinds[name] ?? CubecastError)(text);
}

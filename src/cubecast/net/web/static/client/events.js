/** What arrives: messages and gaps. A message is opened when it is looked at, not when it arrives. */

import { dataOf, jsonOf, open, principalOf } from "./envelope.js";
import { textOf } from "./messagepack.js";

const MOST_RUNS = 1000;

/** A delivered publication. */
export class Message {
  /**
   * @param {string} topic
   * @param {number} source the node through which it was published
   * @param {number} incarnation of that node
   * @param {number} counter from 1 per topic and publisher
   * @param {Uint8Array} sealed
   * @param {number | null} offset in the node's log, where the subscription began in one
   */
  constructor(topic, source, incarnation, counter, sealed, offset = null) {
    this.topic = topic;
    this.source = source;
    this.incarnation = incarnation;
    this.counter = counter;
    this.sealed = sealed;
    this.offset = offset;
  }

  get id() {
    return `${this.source}.${this.incarnation}.${this.counter}`;
  }

  /** Bytes, text or a JSON value, as published. Throws RemoteProtocolError when garbled. */
  get data() {
    return dataOf(this.sealed);
  }

  /** @returns {Record<string, string>} */
  get headers() {
    return open(this.sealed).headers;
  }

  /** Who published it, where security is enabled: the client's name as its node knows it. @returns {string | null} */
  get principal() {
    return principalOf(this.sealed);
  }

  /** The content as bytes, whatever it was published as. */
  body() {
    return open(this.sealed).body;
  }

  text() {
    return textOf(this.body());
  }

  json() {
    return jsonOf(this.body());
  }
}

/** @typedef {{ topic: string, source: number, incarnation: number, first: number, last: number }} Missing */

/** Messages this subscription will never see. Whatever is read after it comes after them. */
export class Gap {
  /**
   * @param {string} topic the topic, or the pattern where several may be concerned
   * @param {string} reason
   * @param {Missing[]} missing which ones, as far as they are known by name
   * @param {number} count how many are known to be missing
   */
  constructor(topic, reason, missing = [], count = 0) {
    this.topic = topic;
    this.reason = reason;
    this.missing = missing;
    this.count = count;
  }
}

/** Collects names of missing messages into runs; keeps a bounded number of runs and counts everything. */
export class Runs {
  /** @type {Missing[]} */
  runs = [];
  count = 0;

  /** @param {string} topic @param {number} source @param {number} incarnation @param {number} counter */
  add(topic, source, incarnation, counter) {
    this.#append({ topic, source, incarnation, first: counter, last: counter });
    this.count++;
  }

  /** @param {Gap} gap what was missing before */
  addGap(gap) {
    for (const run of gap.missing) this.#append({ ...run });
    this.count += gap.count;
  }

  /** @param {Missing} run */
  #append(run) {
    const last = this.runs.at(-1);
    const same = last && last.topic === run.topic && last.source === run.source && last.incarnation === run.incarnation;
    if (same && last.last + 1 === run.first) last.last = run.last;
    else if (this.runs.length < MOST_RUNS) this.runs.push(run);
  }

  /** @param {string} topic @param {string} reason */
  gap(topic, reason) {
    return new Gap(topic, reason, this.runs, this.count);
  }
}

/**
 * @param {string} topic
 * @param {[number, number, number][]} missing as the node names them
 * @param {string} reason
 * @param {[number, number, number, number][]} more runs of them: source, incarnation, first and last counter
 * @param {number} count how many more
 */
export function namedGap(topic, missing, reason, more, count) {
  const runs = new Runs();
  for (const [source, incarnation, counter] of missing) runs.add(topic, source, incarnation, counter);
  const further = more.map(([source, incarnation, first, last]) => ({ topic, source, incarnation, first, last }));
  runs.addGap(new Gap(topic, reason, further, count));
  return runs.gap(topic, reason);
}

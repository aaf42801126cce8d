/**
 * The part of MessagePack that nodes speak: nil, booleans, integers, doubles, text, bytes, arrays and maps with text for
 * keys. No extensions. Numbers outside of what a double holds exactly come as BigInt.
 */

import { BadInput, RemoteProtocolError } from "./errors.js";

const DEEPEST = 64;
const utf8 = new TextEncoder();
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * @param {string} text
 * @returns {Uint8Array} its UTF-8; BadInput for halves of surrogate pairs, which have none
 */
export function bytesOf(text) {
  const bytes = utf8.encode(text);
  // The encoder replaces what it cannot encode; then, and only then, reading it again gives another text.
  if (bytes.length > text.length && strict.decode(bytes) !== text) throw new BadInput("text must be valid Unicode");
  return bytes;
}

/**
 * @param {Uint8Array} bytes
 * @returns {string} RemoteProtocolError when it is no UTF-8
 */
export function textOf(bytes) {
  try {
    return strict.decode(bytes);
  } catch {
    throw new RemoteProtocolError("the message is not text");
  }
}

class Writer {
  #bytes = new Uint8Array(256);
  #view = new DataView(this.#bytes.buffer);
  #end = 0;

  get written() {
    return this.#bytes.slice(0, this.#end);
  }

  /** @param {number} size */
  #reserve(size) {
    if (this.#end + size > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(this.#bytes.length * 2, this.#end + size));
      larger.set(this.#bytes.subarray(0, this.#end));
      this.#bytes = larger;
      this.#view = new DataView(larger.buffer);
    }
    this.#end += size;
    return this.#end - size;
  }

  /** @param {number} byte */
  byte(byte) {
    const at = this.#reserve(1);
    this.#bytes[at] = byte;
  }

  /** @param {number} mark @param {number} size 1, 2, 4 or 8 bytes @param {number} number */
  marked(mark, size, number) {
    this.byte(mark);
    const at = this.#reserve(size);
    if (size === 1) this.#view.setUint8(at, number);
    else if (size === 2) this.#view.setUint16(at, number);
    else if (size === 4) this.#view.setUint32(at, number);
    else this.#view.setBigInt64(at, BigInt(number));
  }

  /** @param {number} number */
  double(number) {
    this.byte(0xcb);
    const at = this.#reserve(8);
    this.#view.setFloat64(at, number);
  }

  /** @param {Uint8Array} bytes */
  raw(bytes) {
    const at = this.#reserve(bytes.length);
    this.#bytes.set(bytes, at);
  }
}

/** @param {any} value @returns {Uint8Array} */
export function encode(value) {
  const writer = new Writer();
  write(writer, value, 0);
  return writer.written;
}

/** @param {Writer} to @param {any} value @param {number} depth */
function write(to, value, depth) {
  if (depth > DEEPEST) throw new BadInput("nested too deeply");
  if (value === null || value === undefined) to.byte(0xc0);
  else if (value === true || value === false) to.byte(value ? 0xc3 : 0xc2);
  else if (typeof value === "number") writeNumber(to, value);
  else if (typeof value === "string") writeText(to, value);
  else if (value instanceof Uint8Array) writeBytes(to, value);
  else if (Array.isArray(value)) {
    writeCount(to, value.length, 0x90, 0xdc);
    for (const one of value) write(to, one, depth + 1);
  } else {
    const entries = Object.entries(value);
    writeCount(to, entries.length, 0x80, 0xde);
    for (const [key, one] of entries) {
      writeText(to, key);
      write(to, one, depth + 1);
    }
  }
}

/** @param {Writer} to @param {number} number */
function writeNumber(to, number) {
  if (!Number.isSafeInteger(number)) to.double(number);
  else if (number >= 0) {
    if (number < 0x80) to.byte(number);
    else if (number < 0x100) to.marked(0xcc, 1, number);
    else if (number < 0x10000) to.marked(0xcd, 2, number);
    else if (number < 0x100000000) to.marked(0xce, 4, number);
    else to.marked(0xcf, 8, number);
  } else if (number >= -32) to.byte(number & 0xff);
  else to.marked(0xd3, 8, number);
}

/** @param {Writer} to @param {string} text */
function writeText(to, text) {
  const bytes = bytesOf(text);
  const size = bytes.length;
  if (size < 32) to.byte(0xa0 | size);
  else if (size < 0x100) to.marked(0xd9, 1, size);
  else if (size < 0x10000) to.marked(0xda, 2, size);
  else to.marked(0xdb, 4, size);
  to.raw(bytes);
}

/** @param {Writer} to @param {Uint8Array} bytes */
function writeBytes(to, bytes) {
  const size = bytes.length;
  if (size < 0x100) to.marked(0xc4, 1, size);
  else if (size < 0x10000) to.marked(0xc5, 2, size);
  else to.marked(0xc6, 4, size);
  to.raw(bytes);
}

/** @param {Writer} to @param {number} count @param {number} short @param {number} long */
function writeCount(to, count, short, long) {
  if (count < 16) to.byte(short | count);
  else if (count < 0x10000) to.marked(long, 2, count);
  else to.marked(long + 1, 4, count);
}

/**
 * All values that stand one after the other. Bytes are views into `bytes`, not copies.
 * @param {Uint8Array} bytes
 * @returns {any[]}
 */
export function decodeAll(bytes) {
  const reader = new Reader(bytes);
  const values = [];
  try {
    while (!reader.isAtEnd) values.push(reader.value(0));
  } catch (error) {
    if (error instanceof RangeError) throw new RemoteProtocolError("MessagePack that ends too early");
    throw error;
  }
  return values;
}

class Reader {
  #bytes;
  #view;
  #at = 0;

  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get isAtEnd() {
    return this.#at >= this.#bytes.length;
  }

  /** @param {number} size @returns {number} where these bytes begin */
  #skip(size) {
    if (this.#at + size > this.#bytes.length) throw new RangeError();
    this.#at += size;
    return this.#at - size;
  }

  /** @param {number} depth @returns {any} */
  value(depth) {
    if (depth > DEEPEST) throw new RemoteProtocolError("MessagePack nested too deeply");
    const mark = this.#view.getUint8(this.#skip(1));
    if (mark < 0x80) return mark;
    if (mark >= 0xe0) return mark - 0x100;
    if (mark >= 0xa0 && mark < 0xc0) return textOf(this.#take(mark & 31));
    if (mark >= 0x90 && mark < 0xa0) return this.#array(mark & 15, depth);
    if (mark < 0x90) return this.#map(mark & 15, depth);
    return this.#marked(mark, depth);
  }

  /** @param {number} mark @param {number} depth @returns {any} */
  #marked(mark, depth) {
    switch (mark) {
      case 0xc0:
        return null;
      case 0xc2:
      case 0xc3:
        return mark === 0xc3;
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return this.#take(this.#unsigned(mark - 0xc4));
      case 0xca:
        return this.#view.getFloat32(this.#skip(4));
      case 0xcb:
        return this.#view.getFloat64(this.#skip(8));
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.#unsigned(mark - 0xcc);
      case 0xcf:
        return exact(this.#view.getBigUint64(this.#skip(8)));
      case 0xd0:
        return this.#view.getInt8(this.#skip(1));
      case 0xd1:
        return this.#view.getInt16(this.#skip(2));
      case 0xd2:
        return this.#view.getInt32(this.#skip(4));
      case 0xd3:
        return exact(this.#view.getBigInt64(this.#skip(8)));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return textOf(this.#take(this.#unsigned(mark - 0xd9)));
      case 0xdc:
      case 0xdd:
        return this.#array(this.#unsigned(mark - 0xdb), depth);
      case 0xde:
      case 0xdf:
        return this.#map(this.#unsigned(mark - 0xdd), depth);
      default:
        throw new RemoteProtocolError(`MessagePack of an unknown kind ${mark}`);
    }
  }

  /** @param {number} power the number has 2^power bytes */
  #unsigned(power) {
    if (power === 0) return this.#view.getUint8(this.#skip(1));
    return power === 1 ? this.#view.getUint16(this.#skip(2)) : this.#view.getUint32(this.#skip(4));
  }

  /** @param {number} size */
  #take(size) {
    const start = this.#skip(size);
    return this.#bytes.subarray(start, start + size);
  }

  /** @param {number} count @param {number} depth */
  #array(count, depth) {
    const found = [];
    for (let index = 0; index < count; index++) found.push(this.value(depth + 1));
    return found;
  }

  /** @param {number} count @param {number} depth */
  #map(count, depth) {
    // Without a prototype, so that no key means anything.
    const found = Object.create(null);
    for (let index = 0; index < count; index++) {
      const key = this.value(depth + 1);
      if (typeof key !== "string") throw new RemoteProtocolError("a map whose keys are not text");
      found[key] = this.value(depth + 1);
    }
    return found;
  }
}

/** @param {bigint} number */
function exact(number) {
  const near = Number(number);
  return Number.isSafeInteger(near) ? near : number;
}

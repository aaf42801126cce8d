import { check, same, throws } from "./asserting.js";
import { bytesOf, decodeAll, encode } from "/client/messagepack.js";

const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export function testEveryWidthOfNumbersSurvives() {
  const edges = [0, 1, 127, 128, 255, 256, 65535, 65536, 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER];
  for (const number of [...edges, -1, -32, -33, -128, -129, -(2 ** 40), Number.MIN_SAFE_INTEGER, 0.5, -1e300]) {
    same(decodeAll(encode(number)), [number]);
  }
}

export function testTextAndBytesOfEveryLengthSurvive() {
  for (const size of [0, 1, 31, 32, 255, 256, 65535, 65536, 70000]) {
    same(decodeAll(encode("é".repeat(size))), ["é".repeat(size)]);
    same(decodeAll(encode(new Uint8Array(size).fill(7)))[0].length, size);
  }
}

export function testNestedValuesAndSeveralInARow() {
  const value = [null, true, false, { a: [1, "x", { b: [] }] }, Array.from({ length: 20 }, (_, index) => index)];
  const twice = new Uint8Array([...encode(value), ...encode([23])]);
  same(JSON.stringify(decodeAll(twice)), JSON.stringify([value, [23]]));
}

export function testTheFormIsTheShortest() {
  same(hex(encode([5, "t", new Uint8Array([1])])), "9305a174c40101");
  same(hex(encode({ a: null })), "81a161c0");
}

export function testWhatIsCutOffOrForeignIsRefused() {
  const whole = encode([18, 1, "topic", 0, 0, 1, [new Uint8Array(300)]]);
  for (let end = 1; end < whole.length; end += 7) throws("RemoteProtocolError", () => decodeAll(whole.slice(0, end)));
  for (const bytes of [[0xc1], [0xd4, 1, 2], [0x81, 1, 2], [0xa1, 0xff], [0xdd, 255, 255, 255, 255]]) {
    throws("RemoteProtocolError", () => decodeAll(new Uint8Array(bytes)));
  }
  throws("RemoteProtocolError", () => decodeAll(new Uint8Array(100).fill(0x91)));
}

export function testHugeNumbersStayExact() {
  const [number] = decodeAll(new Uint8Array([0xcf, 255, 255, 255, 255, 255, 255, 255, 255]));
  check(number === 2n ** 64n - 1n);
}

export function testHalvesOfSurrogatePairsAreRefused() {
  throws("BadInput", () => bytesOf("a\ud800b"));
  same(bytesOf("\u{1f600}").length, 4);
}

export function testKeysMeanNothing() {
  const [map] = decodeAll(encode(JSON.parse('{"__proto__": 1, "constructor": 2}')));
  same(Object.keys(map).sort(), ["__proto__", "constructor"]);
}

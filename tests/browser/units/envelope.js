import { same, throws } from "./asserting.js";
import { dataOf, open, principalOf, seal } from "/client/envelope.js";

export function testWhatIsSealedComesOutInItsType() {
  for (const data of ["", "text", 0, 1.5, null, true, [1, { a: "ü" }], { nested: { deep: [] } }]) {
    same(dataOf(seal(data)), data);
    same(dataOf(seal(data, { by: "ann" })), data);
  }
  for (const bytes of [[], [1, 2], [0xc1], [0xc1, 2, 3]]) same([...dataOf(seal(new Uint8Array(bytes)))], bytes);
  same([...dataOf(seal(new Uint16Array([1, 2]).subarray(1)))], [2, 0]);
  same([...dataOf(seal(new Uint8Array([7]).buffer))], [7]);
}

export function testPlainBytesTravelAsTheyAreAndAreCopied() {
  const mine = new Uint8Array([1, 2, 3]);
  const sealed = seal(mine);
  mine[0] = 9;
  same([...sealed], [1, 2, 3]);
}

export function testHeadersAreTextNumbersAndBooleans() {
  same(open(seal("x", { a: "1", ü: "2" })).headers, { a: "1", ü: "2" });
  same(open(seal("x", { a: 1, b: -2.5, c: true })).headers, { a: 1, b: -2.5, c: true });
  same(open(seal("x", {})).headers, {});
  for (const wrong of [null, NaN, Infinity, {}, [1], 10n, () => 1]) throws("BadInput", () => seal("x", { a: wrong }));
}

export function testWhatCannotBeSaidIsRefused() {
  const circle = {};
  circle.self = circle;
  for (const data of [undefined, () => 1, Symbol("s"), circle, 10n, "\ud800", { a: "\udc00" }]) {
    throws("BadInput", () => seal(data));
  }
  same(dataOf(seal({ a: "\\ud800" })), { a: "\\ud800" });
}

export function testGarbledEnvelopesAreRefused() {
  const headed = seal("x", { a: "1" });
  const cases = [[], [0xc1], [0xc1, 9], [0xc1, 3], [0xc1, 3, 0x90], [0xc1, 3, 0x93, 0x80, 7, 0xc4, 0], [...headed, 1]];
  for (const bytes of cases) throws("RemoteProtocolError", () => dataOf(new Uint8Array(bytes)));
  throws("RemoteProtocolError", () => dataOf(new Uint8Array([0xc1, 1, 0xff])));
  throws("RemoteProtocolError", () => dataOf(new Uint8Array([0xc1, 2, 0x7b])));
}

export function testStampsNameThePublisher() {
  const stamp = [0xc1, 4, 3, 0x61, 0x6e, 0x6e];
  for (const data of ["text", { a: 1 }, ""]) {
    const stamped = new Uint8Array([...stamp, ...seal(data, { by: "x" })]);
    same([principalOf(stamped), dataOf(stamped), open(stamped).headers], ["ann", data, { by: "x" }]);
  }
  same([...dataOf(new Uint8Array([...stamp, 7, 8]))], [7, 8]);
  same(principalOf(seal("text")), null);
  for (const bytes of [[0xc1, 4], [0xc1, 4, 0], [0xc1, 4, 9, 0x61]]) {
    throws("RemoteProtocolError", () => principalOf(new Uint8Array(bytes)));
    throws("RemoteProtocolError", () => open(new Uint8Array(bytes)));
  }
}

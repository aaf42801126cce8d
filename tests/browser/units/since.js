import { same, throws } from "./asserting.js";
import { Position, start } from "/client/since.js";

const KNOWN = [["t", 1, 0, 7]];

export function testWhatAPageSaysTravelsAsPythonWritesIt() {
  same(start("beginning"), [1]);
  same(start("now"), [2]);
  same(start(42), [3, 42]);
  same(start(new Date(1500)), [4, 1.5]);
  same(start(KNOWN), [5, KNOWN, false]);
}

export function testAnythingElseIsRefused() {
  for (const wrong of ["yesterday", -1, 1.5, new Date(NaN), [["t", 1]], [[1, 1, 0, 7]], {}, null, true]) {
    throws("BadInput", () => start(wrong));
  }
}

export function testAnotherNodeIsAskedForWhatMeansTheSameThere() {
  same(new Position("beginning").elsewhere(KNOWN), [5, KNOWN, true]);
  same(new Position(KNOWN).elsewhere(KNOWN), [5, KNOWN, true]);
  same(new Position(new Date(2000)).elsewhere(KNOWN), [4, 2]);
  const offset = new Position(42);
  same(offset.elsewhere(KNOWN), [2]);
  offset.delivered(12.5);
  offset.delivered(99);
  same(offset.elsewhere(KNOWN), [4, 12.5]);
  offset.caughtUp();
  same(offset.elsewhere(KNOWN), [5, KNOWN, true]);
  const many = Array.from({ length: 20001 }, (_, index) => [`t${index}`, 1, 0, 1]);
  same(offset.elsewhere(many), [2]);
}

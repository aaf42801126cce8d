import { idOf, parsed, shortId } from "/page/ids.js";
import { same } from "./asserting.js";

const LONG = "8150227612733298688";

export function testLongIdsKeepTheirDigits() {
  const said = parsed(`{"node":${LONG},"edges":[[${LONG},7,""]],"children":{"${LONG}":[7]},"free":[ -${LONG} ]}`);
  same(said.node, LONG);
  same(said.edges[0], [LONG, 7, ""]);
  same(said.children[said.node], [7]);
  same(said.free, [`-${LONG}`]);
  same(idOf(Object.keys(said.children)[0]), said.node);
}

export function testEverythingElseIsAsItWas() {
  const plain = { at: 1795054412.6161637, small: 0.30000000000000004, tiny: 1.2345678901234567e-20, most: 2 ** 53 - 1 };
  const texts = { name: `node ${LONG}`, quoted: `"${LONG}" and \\${LONG}`, list: [true, null, "", 0, -1] };
  same(parsed(JSON.stringify({ plain, texts })), { plain, texts });
  same(idOf("7"), 7);
}

export function testTheLastDigitsOfADrawnIdFit() {
  same([shortId(LONG), shortId(8191), shortId(0)], ["8688", "8191", "0"]);
}

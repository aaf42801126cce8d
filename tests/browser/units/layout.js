import { check, same } from "./asserting.js";
import { cubeLayout, depths, differingBits, overlayLayout, smallestDistance, treeLayout, wayTo } from "/page/layout.js";

const range = (count) => Array.from({ length: count }, (_, index) => index);
const FRAMES = [
  [700, 430],
  [520, 420],
  [330, 640],
];

/** The tree of node 0 in a full cube: a node's children flip one bit below its lowest one. */
function binomial(count) {
  const children = Object.fromEntries(range(count).map((id) => [id, []]));
  for (const id of range(count).slice(1)) children[id & (id - 1)].push(id);
  return { root: 0, children };
}

function inside(places, width, height) {
  for (const { x, y } of places.values()) check(x >= 0 && x <= width && y >= 0 && y <= height, `${x}, ${y} is outside`);
}

export function testOverlaysThatAreNoCubesFit() {
  const ids = [3, 5, 9, 12, 40];
  const edges = [[3, 5, ""], [3, 9, "t"], [9, 12, ""]];
  for (const [width, height] of FRAMES) {
    for (const shape of ["graph", "tree"]) {
      const places = overlayLayout({ shape, edges }, ids, width, height, 30);
      same([...places.keys()].sort((one, other) => one - other), ids);
      inside(places, width, height);
      check(smallestDistance(places.values()) > 24, shape);
    }
    const tree = overlayLayout({ shape: "tree", edges }, ids, width, height, 30);
    check(tree.get(3).y < tree.get(9).y && tree.get(9).y < tree.get(12).y, "parents stand above children");
  }
  same(overlayLayout({ shape: "graph", edges: [] }, [7], 100, 100, 10).get(7), { x: 50, y: 10 });
}

export function testNobodyHidesAnybodyFromThreeToSixtyFour() {
  for (const [width, height] of FRAMES) {
    for (let count = 3; count <= 64; count++) {
      const { places } = cubeLayout(range(count), width, height, 30);
      same(places.size, count);
      inside(places, width, height);
      check(smallestDistance(places.values()) > 24, `${count} in ${width}: ${smallestDistance(places.values())}`);
    }
  }
}

export function testEveryoneHasAPlaceInTheTree() {
  for (let count = 2; count <= 64; count++) {
    const tree = binomial(count);
    const places = treeLayout(tree, range(count + 3), 700, 430, 30);
    same(places.size, count + 3);
    inside(places, 700, 430);
    check(smallestDistance(places.values()) > 14, `${count}: ${smallestDistance(places.values())}`);
  }
}

export function testOnlyBitsInWhichMembersDifferTakeRoom() {
  same(differingBits([0, 1, 2]), [0, 1]);
  same(differingBits([32, 33]), [0]);
  same(differingBits([5]), []);
  const { places, free } = cubeLayout([0, 1, 2], 700, 430, 30);
  same([places.size, free.length], [3, 1]);
  same(cubeLayout([7], 700, 430, 30).places.get(7), { x: 350, y: 215 });
  same(cubeLayout([], 700, 430, 30).places.size, 0);
}

export function testLargeCubesAreDrawnToo() {
  const { places } = cubeLayout(range(300), 700, 430, 30);
  inside(places, 700, 430);
  check(smallestDistance(places.values()) > 2);
}

export function testDepthsAndWaysFollowTheTree() {
  const tree = { root: 0, children: { 0: [1, 2], 1: [], 2: [3], 3: [] } };
  same([...depths(tree)], [[0, 0], [1, 1], [2, 1], [3, 2]]);
  same([...wayTo(tree, 3)], ["2-3", "0-2"]);
  same([...wayTo(tree, 0)], []);
  same([...wayTo(tree, 99)], []);
}

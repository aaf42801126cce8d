import { same } from "./asserting.js";
import { niceCeiling } from "/page/chart.js";
import { count, duration, messageName, plural, rate, size } from "/page/format.js";

export function testNumbersReadWell() {
  same([count(0), count(12345), count(1234567)], ["0", "12,345", "1.2M"]);
  same([rate(0), rate(0.25), rate(12.3), rate(2000)], ["0", "0.3", "12", "2,000"]);
  same([size(0), size(999), size(2500), size(3.2e6)], ["0 B", "999 B", "2.5 kB", "3.2 MB"]);
  same([0.0004, 0.0213, 0.25, 3, 600, 7200].map(duration), ["0.40 ms", "21.3 ms", "250 ms", "3.0 s", "10 min", "2.0 h"]);
  same([duration(0), duration(null)], ["0 ms", "–"]);
  same([plural(1, "step"), plural(3, "step")], ["1 step", "3 steps"]);
  same([messageName([3, 0, 7]), messageName([3, 2, 7])], ["3 #7", "3.2 #7"]);
}

export function testScalesEndAtRoundNumbers() {
  same([0, 0.0013, 1, 1.01, 4, 6, 99, 100].map(niceCeiling), [0, 0.002, 1, 2, 5, 10, 100, 100]);
}

import { check, same, throws } from "./asserting.js";
import { Gap, Message } from "/client/events.js";
import { Inbox } from "/client/inbox.js";

class Owner {
  pattern = "t.>";
  calls = [];
  pause = () => this.calls.push("pause");
  resume = () => this.calls.push("resume");
  cutOff = (reason) => this.calls.push(reason);
}

const message = (counter, size = 36, source = 1) => new Message("t.a", source, 0, counter, new Uint8Array(size));

function filled(options, count) {
  const owner = new Owner();
  const inbox = new Inbox(owner, options);
  for (let counter = 1; counter <= count; counter++) inbox.admit(message(counter));
  return [inbox, owner];
}

function drained(inbox) {
  const events = [];
  for (let event = inbox.take(); event; event = inbox.take()) events.push(event);
  return events;
}

export function testBlockingPausesAtTheBudgetAndResumesAtHalf() {
  const [inbox, owner] = filled({ budget: 1000 }, 12);
  same(owner.calls, ["pause"]);
  check(inbox.held === 1200 && inbox.isPaused);
  for (let read = 0; read < 7; read++) inbox.take();
  same(owner.calls, ["pause", "resume"]);
  same(drained(inbox).map((one) => one.counter), [8, 9, 10, 11, 12]);
  same(inbox.held, 0);
}

export async function testAReaderThatStopsIsCutOff() {
  const owner = new Owner();
  const cut = new Promise((resolve) => (owner.cutOff = resolve));
  const inbox = new Inbox(owner, { budget: 1, patience: 20 });
  inbox.admit(message(1));
  check((await cut).includes("nothing was read for 20 ms"));
}

export function testDisconnectingEndsIt() {
  const [, owner] = filled({ budget: 1000, whenSlow: "disconnect" }, 11);
  same(owner.calls.length, 1);
  check(owner.calls[0].includes("the budget is 1000"));
}

export function testDropOldestLeavesAGapInItsPlace() {
  const [inbox] = filled({ budget: 500, whenSlow: "drop-oldest" }, 12);
  const [gap, ...rest] = drained(inbox);
  check(gap instanceof Gap && gap.reason.includes("too slow"));
  same(gap.missing, [{ topic: "t.a", source: 1, incarnation: 0, first: 1, last: 7 }]);
  same(gap.count, 7);
  same(rest.map((one) => one.counter), [8, 9, 10, 11, 12]);
}

export function testDropNewestSaysWhatFollowsIsMissing() {
  const [inbox] = filled({ budget: 500, whenSlow: "drop-newest" }, 9);
  inbox.admit(new Gap("t.a", "lost elsewhere", [{ topic: "t.a", source: 2, incarnation: 0, first: 4, last: 5 }], 2));
  const events = drained(inbox);
  same(events.slice(0, 5).map((one) => one.counter), [1, 2, 3, 4, 5]);
  same(events[5].missing.map(({ source, first, last }) => [source, first, last]), [
    [1, 6, 9],
    [2, 4, 5],
  ]);
  same(events[5].count, 6);
  inbox.admit(message(10));
  same(drained(inbox).map((one) => one.counter), [10]);
}

export function testOneLargeMessageAlwaysFits() {
  for (const whenSlow of ["disconnect", "drop-oldest", "drop-newest"]) {
    const owner = new Owner();
    const inbox = new Inbox(owner, { budget: 10, whenSlow });
    inbox.admit(message(1, 5000));
    same([drained(inbox).length, owner.calls], [1, []]);
  }
}

export function testManyReadsAndWritesKeepTheOrder() {
  const inbox = new Inbox(new Owner(), {});
  let next = 1;
  for (let counter = 1; counter <= 10000; counter++) {
    inbox.admit(message(counter, 1));
    if (counter % 3) check(inbox.take().counter === next++, "out of order");
  }
  for (const event of drained(inbox)) check(event.counter === next++, "out of order");
  same(next, 10001);
}

export function testPoliciesAndBudgetsAreChecked() {
  throws("BadInput", () => new Inbox(new Owner(), { whenSlow: "explode" }));
  throws("BadInput", () => new Inbox(new Owner(), { budget: 0 }));
  throws("BadInput", () => new Inbox(new Owner(), { patience: NaN }));
}

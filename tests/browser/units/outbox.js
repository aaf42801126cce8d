import { check, rejects, same } from "./asserting.js";
import { Outbox } from "/client/outbox.js";
import { AWAIT_STABLE, CREDIT, PUBLISH } from "/client/wire.js";

const payload = (size) => new Uint8Array(size);

function waited() {
  const waiter = {};
  waiter.promise = new Promise((resolve, reject) => Object.assign(waiter, { resolve, reject }));
  waiter.promise.catch(() => {});
  return waiter;
}

export function testNeighboursOfOneTopicShareAFrame() {
  const outbox = new Outbox(1 << 20);
  for (const topic of ["a", "a", "b", "a"]) outbox.publish(topic, payload(1));
  same(outbox.take().map(([kind, number, topic, payloads]) => [kind, number, topic, payloads.length]), [
    [PUBLISH, 1, "a", 2],
    [PUBLISH, 2, "b", 1],
    [PUBLISH, 3, "a", 1],
  ]);
  same([outbox.take().length, outbox.left, outbox.isEmpty], [0, 4, false]);
  outbox.taken(3);
  same([outbox.left, outbox.isEmpty], [0, true]);
}

export function testCreditHoldsBackAndOneLargeOneAlwaysGoes() {
  const outbox = new Outbox(1 << 30);
  for (let count = 0; count < 4; count++) outbox.publish("t", payload(CREDIT / 2));
  same(outbox.take().length, 1);
  outbox.taken(1);
  same(outbox.take().length, 1);
  const other = new Outbox(1 << 30);
  other.publish("t", payload(CREDIT));
  same(other.take().length, 1);
}

export async function testARefusalReachesOnlyWhoPublishedIt() {
  const outbox = new Outbox(1 << 20);
  const [good, bad] = [waited(), waited()];
  outbox.publish("a", payload(1), good);
  outbox.publish("b", payload(1), bad);
  outbox.take();
  same(outbox.taken(2, "not permitted"), true);
  await good.promise;
  same((await rejects("BadInput", bad.promise)).message, "not permitted");
  outbox.publish("c", payload(1));
  outbox.take();
  same(outbox.taken(3, "not permitted either"), false);
}

export async function testWhatWasSentIsUncertainAndTheRestIsKept() {
  const outbox = new Outbox(1 << 30);
  const [sent, kept, asked, late] = [waited(), waited(), waited(), waited()];
  outbox.publish("a", payload(CREDIT), sent);
  outbox.askStable("a", asked);
  outbox.publish("b", payload(1), kept);
  outbox.askStable("b", late);
  same(outbox.take().map(([kind]) => kind), [PUBLISH, AWAIT_STABLE]);
  same(outbox.connectionLost("gone"), { messages: 1, topics: ["a"] });
  await rejects("OutcomeUnknown", sent.promise);
  await rejects("OutcomeUnknown", asked.promise);
  same(outbox.take().map(([kind, number]) => [kind, number]), [
    [PUBLISH, 1],
    [AWAIT_STABLE, 2],
  ]);
  outbox.taken(1);
  outbox.answered(2, null);
  await kept.promise;
  await late.promise;
}

export function testRoomIsABudget() {
  const outbox = new Outbox(200);
  check(outbox.hasRoom);
  outbox.publish("t", payload(200));
  check(!outbox.hasRoom);
  outbox.take();
  check(!outbox.hasRoom);
  outbox.taken(1);
  check(outbox.hasRoom);
}

export async function testClosingTellsWhatWasSentFromWhatWasNot() {
  const outbox = new Outbox(1 << 20);
  const [sent, unsent, asked] = [waited(), waited(), waited()];
  outbox.publish("t", payload(1), sent);
  outbox.take();
  outbox.publish("t", payload(1), unsent);
  outbox.askStable("t", unsent);
  outbox.askDurable("t", asked, true);
  outbox.close(new TypeError("closed"));
  await rejects("OutcomeUnknown", sent.promise);
  for (const waiter of [unsent, asked]) {
    const error = await rejects("Closed", waiter.promise);
    check(error.message.includes("Nothing was published"), error.message);
  }
  check(outbox.isEmpty);
}

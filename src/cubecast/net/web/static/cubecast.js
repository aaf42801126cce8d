/**
 * cubecast for browsers: publish and subscribe with causes before effects, through any node.
 *
 *     import { connect, Gap } from "/cubecast.js";
 *
 *     const client = await connect("/ws", { token });
 *     const room = client.subscribe("room.>");
 *     await room.ready;
 *     await client.publish("room.hello", { by: "ann", text: "who is there?" }, { wait: "stable" });
 *     for await (const event of room) {
 *       if (event instanceof Gap) console.warn(`something is missing: ${event.reason}`);
 *       else console.log(event.topic, event.data);
 *     }
 */

export { Client, connect } from "./client/client.js";
export { Subscription } from "./client/subscription.js";
export { Service } from "./client/requests.js";
export { Gap, Message } from "./client/events.js";
export {
  BadInput,
  Closed,
  CubecastError,
  Missed,
  NoResponder,
  NoRoom,
  NotDurable,
  NotKept,
  OutcomeUnknown,
  RemoteProtocolError,
  RequestFailed,
  SlowConsumer,
} from "./client/errors.js";

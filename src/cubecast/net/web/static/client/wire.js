/** What a client and a node's gateway say to each other. Every message is an array that begins with its number. */

export const VERSION = 1;

export const SUBSCRIBE = 1; // subscription, pattern, since, filter
export const UNSUBSCRIBE = 2; // subscription
export const PAUSE = 3; // subscription
export const RESUME = 4; // subscription
export const PUBLISH = 5; // number, topic, payloads, request of a question
export const AWAIT_STABLE = 6; // request, topic
export const STATUS_REQUEST = 7; // request
export const PING = 8;
export const AWAIT_DURABLE = 9; // request, topic, only ask
export const ADVERTISE = 14; // request, topic, filter, ends

export const TAKEN = 16; // number, refused
export const STABLE = 17; // request, unknown, refused, handed over
export const DELIVER = 18; // subscription, topic, source, incarnation, counter, payloads, offset, at
export const READY = 19; // subscription
export const LOST = 20; // subscription, topic, missing, reason, runs, count, offsets
export const ENDED = 21; // subscription, reason, error
export const STATUS_REPLY = 22; // request, status
export const PONG = 23;
export const DURABLE = 24; // request, error
export const STANDING = 25; // subscription, known
export const CAUGHT_UP = 26; // subscription
export const RESUMED = 27; // subscription, is complete
export const REACHES = 30; // request, anybody, error
export const ADVERTISED = 33; // request, error

export const CREDIT = 1 << 20;
export const MAX_PAYLOAD = 1 << 20;

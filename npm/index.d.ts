/** cubecast for browsers. Times are milliseconds, sizes bytes; docs/browsers.md says more. */

export type Data = Uint8Array | ArrayBuffer | ArrayBufferView | string | number | boolean | null | object;
export type Headers = Record<string, string>;
export type State = "connected" | "looking" | "closed";
/** Topic, source, incarnation and counter of the last message known of a publisher. */
export type Known = [topic: string, source: number, incarnation: number, counter: number];
/** A whole number is an offset. */
export type Since = "beginning" | "now" | number | Date | Known[];

export interface ConnectOptions {
  /** Proves who you are; it travels in the first message, never in the address. */
  token?: string;
  /** Who you are, for people who look at the node. */
  name?: string;
  /** The cluster's name, to be refused by nodes of another one. */
  cluster?: string;
  /** To look for a node at first, 5000. */
  timeout?: number;
  /** Without any node after which the client gives up, 60000. */
  patience?: number;
}

export interface PublishOptions {
  headers?: Headers;
  wait?: "taken" | "durable" | "stable";
}

export interface RequestOptions {
  headers?: Headers;
  /** 5000. */
  timeout?: number;
}

export interface SubscriptionOptions {
  /** Where in the node's log to begin; without, with what is published from now on. */
  since?: Since;
  gaps?: "yield" | "raise" | "ignore";
  whenSlow?: "block" | "disconnect" | "drop-oldest" | "drop-newest";
  /** Bytes that may wait to be read, 8 MiB. */
  budget?: number;
  /** How long others wait for a reader that has stopped, 5000. */
  patience?: number;
}

/** `url`: `ws://`, `wss://` or relative; several to have a choice when one is lost; without, `/ws` of the page's server. */
export function connect(url?: string | string[], options?: ConnectOptions): Promise<Client>;

/** Events: `state`, `uncertain` (`{messages, topics}`), `refused` (the reason). */
export class Client extends EventTarget {
  private constructor();
  get state(): State;
  get node(): { node: number; incarnation: number; dimension: number; version: number } | null;
  publish(topic: string, data: Data, options?: PublishOptions): Promise<void>;
  /** Promise that whatever is published on the topic through this node matches the filter. For brokers. */
  advertise(topic: string, where?: string): Promise<void>;
  /** Take the promise back, with all that was published. */
  unadvertise(topic: string): Promise<void>;
  stable(topic: string): Promise<void>;
  subscribe(pattern: string, options: SubscriptionOptions & { gaps: "raise" | "ignore" }): Subscription<Message>;
  subscribe(pattern: string, options?: SubscriptionOptions): Subscription<Message | Gap>;
  request(topic: string, data: Data, options?: RequestOptions): Promise<Message>;
  reply(message: Message, data: Data): Promise<void>;
  serve(pattern: string, handler: (message: Message) => Data | Promise<Data>): Service;
  status(): Promise<Record<string, any>>;
  close(timeout?: number): Promise<void>;
}

export class Subscription<Event = Message | Gap> implements AsyncIterable<Event> {
  private constructor();
  readonly pattern: string;
  /** Done when whatever is published from now on, anywhere, arrives here. */
  readonly ready: Promise<void>;
  /** Done when nothing comes any more, with the error that ended it or undefined. */
  readonly ended: Promise<Error | undefined>;
  get closed(): boolean;
  get held(): number;
  next(): Promise<Event>;
  close(): void;
  [Symbol.asyncIterator](): AsyncIterator<Event, undefined>;
}

export class Service {
  private constructor();
  readonly ready: Promise<void>;
  readonly ended: Promise<Error | undefined>;
  close(): void;
}

export class Message {
  private constructor();
  readonly topic: string;
  readonly source: number;
  readonly incarnation: number;
  readonly counter: number;
  /** In the node's log, where the subscription began in one. */
  readonly offset: number | null;
  get id(): string;
  /** Bytes, text or a JSON value, as published. */
  get data(): any;
  get headers(): Headers;
  get principal(): string | null;
  body(): Uint8Array;
  text(): string;
  json(): any;
}

export interface Missing {
  topic: string;
  source: number;
  incarnation: number;
  first: number;
  last: number;
}

export class Gap {
  private constructor();
  readonly topic: string;
  readonly reason: string;
  readonly missing: Missing[];
  readonly count: number;
}

export class CubecastError extends Error {}
export class BadInput extends CubecastError {}
export class RemoteProtocolError extends CubecastError {}
export class OutcomeUnknown extends CubecastError {}
export class NotDurable extends CubecastError {}
export class NotKept extends BadInput {}
export class Closed extends CubecastError {}
export class SlowConsumer extends CubecastError {}
export class NoRoom extends CubecastError {}
export class Missed extends CubecastError {
  readonly gap: Gap;
}
export class NoResponder extends CubecastError {}
export class RequestFailed extends CubecastError {}

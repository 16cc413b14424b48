/** The WebSockets of an actor as readers of its published frames. */
import type { Clock } from "../../../ports/clock.ts";
import { CONTINUE_LATER_CLOSE } from "../../../protocol/frames.ts";
import { hasExpired, type Principal } from "../../../shared/principal.ts";
import type { Client } from "./client.ts";
import type { Outflows } from "./outflow.ts";
import type { ReaderCursor, ReaderPlace } from "./reader-cursor.ts";
import { type Flow, NEW_FLOW, SocketReader } from "./socket-reader.ts";

export interface SocketReadersPorts<Published> {
  clients(): Iterable<Client>;
  cursor(place: ReaderPlace, client: Pick<Client, "state">): ReaderCursor<Published>;
  outflows: Outflows;
  clock: Pick<Clock, "now" | "timer">;
  /** Closes the connection of a principal that has expired or lost its access. */
  refuse(client: Client): void;
}

export class SocketReaders<Published> {
  readonly #readers = new WeakMap<Client, SocketReader<Published>>();

  constructor(private readonly ports: SocketReadersPorts<Published>) {}

  /** The next expiry of a connection; `Infinity` without an expiry. */
  get nextExpiry(): number {
    return Math.min(...[...this.ports.clients()].map(({ state }) => state?.principal.expiresAt ?? Infinity));
  }

  /** Begins to send frames to a new connection. */
  open(client: Client, principal: Principal, cursor: ReaderCursor<Published>, acks: boolean): void {
    this.#add(client, principal, cursor, { ...NEW_FLOW, id: crypto.randomUUID(), acks }, false).advance();
  }

  /** Resumes the connections of an earlier life of the actor. Call it before the first `publish`. `seq` is the number of the last entry. */
  restore(seq: number): void {
    for (const client of this.ports.clients()) {
      if (client.state === null || this.#readers.has(client)) continue;
      // SAFETY: `#add` wrote this state; the SDK's type only makes it readonly.
      const { principal, flow } = client.state as { principal: Principal; flow: Flow };
      const place = flow.seq === undefined ? ({ from: seq, has: "texts" } as const) : { from: flow.seq };
      this.#add(client, principal, this.ports.cursor(place, client), flow, true);
      this.#attempt(client, (reader) => reader.advance());
    }
  }

  /** Sends frames to every connection that has not expired, and closes the others. */
  publish(frames: readonly Published[]): void {
    for (const client of this.expire()) this.#attempt(client, (reader) => reader.publish(frames));
  }

  /** Closes the connections that have expired. Returns the others. */
  expire(): Client[] {
    const now = this.ports.clock.now();
    const [expired, others]: [Client[], Client[]] = [[], []];
    for (const client of this.ports.clients()) {
      if (client.state === null) continue;
      (hasExpired(client.state.principal, now) ? expired : others).push(client);
    }
    for (const client of expired) this.ports.refuse(client);
    return others;
  }

  /** Closes the connections of principals without read access. */
  expel(mayRead: (principal: Principal) => boolean): void {
    for (const client of this.ports.clients()) {
      // SAFETY: `#add` wrote this state; the SDK's type only makes it readonly.
      if (client.state !== null && !mayRead(client.state.principal as Principal)) this.ports.refuse(client);
    }
  }

  /** Sends the answer to a frame of a client; closes a connection that has no reader. */
  answer(client: Client, frame: object): void {
    if (!this.#readers.has(client)) client.close(CONTINUE_LATER_CLOSE, "Connect again.");
    this.#attempt(client, (reader) => reader.answer(JSON.stringify(frame)));
  }

  /** Records an acknowledgement, and reports whether it was due. */
  acknowledge(client: Client, mark: string): boolean {
    let isDue = false;
    this.#attempt(client, (reader) => {
      isDue = reader.acknowledge(mark);
    });
    return isDue;
  }

  closed(client: Client): void {
    this.#readers.get(client)?.leave(true);
  }

  #add(
    client: Client,
    principal: Principal,
    cursor: ReaderCursor<Published>,
    flow: Flow,
    isRestored: boolean,
  ): SocketReader<Published> {
    const { outflows, clock } = this.ports;
    const outflow = flow.acks ? outflows.confirmed : outflows.unconfirmed;
    const keep = (kept: Flow) => void client.setState({ ...client.state, principal, flow: kept });
    const reader = new SocketReader(client, cursor, { outflow, clock, keep }, flow, isRestored);
    this.#readers.set(client, reader);
    keep(flow);
    return reader;
  }

  /** If the frames of a reader cannot be read now, its connection is closed, and its client reconnects. Other readers continue. */
  #attempt(client: Client, act: (reader: SocketReader<Published>) => void): void {
    const reader = this.#readers.get(client);
    if (reader === undefined) return;
    try {
      act(reader);
    } catch (error) {
      console.error(error);
      reader.leave(false);
      client.close(CONTINUE_LATER_CLOSE, "The frames cannot be read right now.");
    }
  }
}

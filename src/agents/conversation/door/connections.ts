/**
 * WebSocket clients of a conversation. Connections hibernate, so each keeps what it needs after a wake in its own state.
 *
 * CONN-1  A connection first gets a snapshot, or, with `from`, the frames it missed; then every frame once, in order. A
 *         client that missed too much for its buffer is closed in between, and resumes from its last `seq`.
 * CONN-2  Frames from clients are validated; a bad frame is answered with `error` and changes nothing.
 * CONN-3  When its principal expires a connection is closed with 4401, idle or not; nothing is sent to it and nothing is
 *         accepted from it after that moment.
 * CONN-4  A connection that exceeds its allowance gets an error and is closed with 4429; what it sent meanwhile is
 *         dropped.
 * CONN-5  A connection that cannot be opened for now is closed with 1013, so that its client connects again; one that can
 *         never be opened is closed with 4404.
 */

import type { Connection, WSMessage } from "agents";
import type { Clock } from "../../../ports/clock.ts";
import type { StartedTurn, StartTurn } from "../../../protocol/conversation-api.ts";
import { FLOOD_CLOSE, type Frame, NOT_FOUND_CLOSE, UNAUTHORIZED_CLOSE } from "../../../protocol/frames.ts";
import type { ClientFrame } from "../../../protocol/requests.ts";
import type { WireError } from "../../../protocol/views.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError, toErrorData } from "../../../shared/errors.ts";
import { hasExpired, type Principal } from "../../../shared/principal.ts";
import { ephemeralFrame, wireError } from "../core/frames.ts";
import type { OpeningSlice } from "../reads/opening.ts";
import { messageLength, parseClientFrame, parseMessage, refInHead, refOf } from "./client-frames.ts";
import { type Allowance, spend } from "./flood.ts";
import { MAX_SUBSCRIBERS } from "./limits.ts";
import { tooManySubscribers } from "./subscribers.ts";

/** Length of the frames that a connection gets at once when it opens: they wait in the actor's memory. */
const MAX_OPENING_LENGTH = 8 * 1024 * 1024;
/** The close code after which a client connects again. */
const CONTINUE_LATER = 1013;

/** The state that a connection keeps over hibernation. */
export interface ConnectionMemory {
  principal: Principal;
}

export interface ConnectionPorts {
  /** Returns the frames to begin with. */
  opening(principal: Principal, from: number | undefined): Iterable<OpeningSlice>;
  startTurn(principal: Principal, input: StartTurn): Promise<StartedTurn>;
  /** Resolves when the result is recorded, now or before. */
  submitResult(principal: Principal, frame: Extract<ClientFrame, { type: "tool.result" }>): Promise<void>;
  /** Returns the number of open connections, a new one included. */
  connections(): number;
  clock: Pick<Clock, "now">;
}

export type Client = Connection<ConnectionMemory>;

export function openConnection(
  ports: ConnectionPorts,
  client: Client,
  principal: Principal,
  from?: number,
): void {
  const refuse = (error: unknown, closeCode?: number) => {
    const { code, retriable } = sendError(ports, client, error);
    client.close(closeCode ?? (retriable ? CONTINUE_LATER : NOT_FOUND_CLOSE), code);
  };
  if (ports.connections() > MAX_SUBSCRIBERS) {
    refuse(tooManySubscribers(), FLOOD_CLOSE);
    return;
  }
  if (hasExpired(principal, ports.clock.now())) {
    closeUnauthorized(client);
    return;
  }
  try {
    let sent = 0;
    for (const { frames, last } of ports.opening(principal, from)) {
      sent += sendFrames(client, frames);
      if (last || sent <= MAX_OPENING_LENGTH) continue;
      client.close(CONTINUE_LATER, "Connect again with the last seq.");
      return;
    }
    // Not before: the deltas that the opening flushes to other clients are in this client's opening already.
    client.setState({ principal });
  } catch (error) {
    refuse(error);
  }
}

/** Remaining allowances. Hibernation clears them; by then each has refilled. */
const allowances = new WeakMap<Client, Allowance>();

/** Reports whether a message may be read. Closes a connection that has expired or exceeds its allowance. */
export function admit(ports: ConnectionPorts, client: Client, message: WSMessage): boolean {
  // Messages that were sent before the connection was closed may still arrive.
  if (client.readyState !== WebSocket.OPEN) return false;
  const now = ports.clock.now();
  if (client.state !== null && hasExpired(client.state.principal, now)) {
    closeUnauthorized(client);
    return false;
  }
  const left = spend(allowances.get(client), messageLength(message), now);
  if (left !== null) {
    allowances.set(client, left);
    return true;
  }
  const tooMuch = "The connection sent too much at once. Connect again in a moment.";
  sendError(ports, client, new DramatisError("RATE_LIMITED", tooMuch, { retriable: true }));
  client.close(FLOOD_CLOSE, "RATE_LIMITED");
  return false;
}

/** Handles a message that was admitted. */
export async function receiveFrame(
  ports: ConnectionPorts,
  client: Client,
  message: WSMessage,
): Promise<void> {
  let ref = refInHead(message);
  try {
    const value = parseMessage(message);
    ref = refOf(value);
    const frame = parseClientFrame(value);
    // SAFETY: `openConnection` wrote this state; the SDK's type only makes it readonly.
    const principal = client.state?.principal as Principal | undefined;
    if (principal === undefined)
      throw new DramatisError("UNAUTHENTICATED", "The connection has no principal. Connect again.");
    switch (frame.type) {
      case "ping":
        sendFrames(client, [ephemeralFrame("pong", {}, {}, ports.clock.now())]);
        return;
      case "turn.start":
        sendFrames(client, await startTurn(ports, principal, frame));
        return;
      case "tool.result":
        await ports.submitResult(principal, frame);
        return;
      default:
        frame satisfies never;
    }
  } catch (error) {
    sendError(ports, client, error, ref);
  }
}

/** Starts a turn; returns the frames for this client alone. */
async function startTurn(
  ports: ConnectionPorts,
  principal: Principal,
  { v: _v, type: _type, id, ...input }: Extract<ClientFrame, { type: "turn.start" }>,
): Promise<Frame[]> {
  const { content } = input;
  const { repeated, turnId, messageId } = await ports.startTurn(principal, { ...input, idempotencyKey: id });
  // A client that repeats a message has not seen its frame, and recorded frames are not published twice.
  if (!repeated) return [];
  return [
    ephemeralFrame("message.user", { clientId: id, content }, { turnId, messageId }, ports.clock.now()),
  ];
}

/** Sends frames to every connection that had its opening. Closes expired connections, even with no frames to send. */
export function broadcast(clients: Iterable<Client>, frames: readonly Frame[], now: number): void {
  const opened = [...clients].filter(({ state }) => state !== null);
  if (opened.length === 0) return;
  const texts = frames.map((frame) => JSON.stringify(frame));
  for (const client of opened) {
    if (client.state !== null && hasExpired(client.state.principal, now)) closeUnauthorized(client);
    else sendTexts(client, texts);
  }
}

/** Returns when the next connection expires; `Infinity` if none does. */
export function nextExpiry(clients: Iterable<Client>): number {
  return Math.min(...[...clients].map(({ state }) => state?.principal.expiresAt ?? Infinity));
}

function closeUnauthorized(client: Client): void {
  client.close(UNAUTHORIZED_CLOSE, "UNAUTHENTICATED");
}

/** Sends an error frame, and returns the error. Logs unexpected errors. */
function sendError(ports: ConnectionPorts, client: Client, error: unknown, ref?: string): WireError {
  if (!(error instanceof DramatisError)) console.error(error);
  const wire = wireError(toErrorData(error));
  sendFrames(client, [ephemeralFrame("error", { ...wire, ...defined({ ref }) }, {}, ports.clock.now())]);
  return wire;
}

/** Sends frames, and returns their length. */
function sendFrames(client: Client, frames: readonly Frame[]): number {
  const texts = frames.map((frame) => JSON.stringify(frame));
  sendTexts(client, texts);
  return texts.reduce((sum, text) => sum + text.length, 0);
}

function sendTexts(client: Client, texts: readonly string[]): void {
  try {
    for (const text of texts) client.send(text);
  } catch {
    // The socket closed a moment ago; its client resumes from its last `seq`.
  }
}

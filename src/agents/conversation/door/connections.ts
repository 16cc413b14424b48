/**
 * WebSocket clients of a conversation. Connections hibernate: what one needs after a wake is in its own state.
 *
 * CONN-1  A connection first gets a snapshot, or, with `from`, what it missed; then every frame once, in order. One that
 *         missed too much for its buffer is closed in between, and comes back with the last number it got.
 * CONN-2  What a client sends is validated; a bad frame is answered with `error` and changes nothing.
 * CONN-3  When its principal expires a connection is closed with 4401, idle or not; nothing goes out to it and nothing
 *         of it is taken after that moment.
 * CONN-4  A connection that sends more than it may is told so and closed with 4429; what it sent meanwhile is dropped.
 * CONN-5  A connection that cannot be opened for now is closed with 1013, so its client comes back; only one that can
 *         never be opened is turned away for good, with 4404.
 */

import type { Connection, WSMessage } from "agents";
import type { StartedTurn, StartTurn } from "../../../protocol/conversation-api.ts";
import { FLOOD_CLOSE, type Frame, NOT_FOUND_CLOSE, UNAUTHORIZED_CLOSE } from "../../../protocol/frames.ts";
import type { ClientFrame } from "../../../protocol/requests.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError, toErrorData } from "../../../shared/errors.ts";
import { hasExpired, type Principal } from "../../../shared/principal.ts";
import { ephemeralFrame } from "../core/frames.ts";
import { MAX_WATCHERS } from "../core/limits.ts";
import { lengthOf, parseClientFrame, parseMessage, refOf } from "./client-frames.ts";
import { type Allowance, spend } from "./flood.ts";
import type { OpeningSlice } from "./subscribers.ts";

/** Characters that a connection is given at once when it opens: they wait in the actor's memory. */
const MAX_OPENING_LENGTH = 8 * 1024 * 1024;
/** The close code that asks a client to connect again. */
const CONTINUE_LATER = 1013;

/** What a connection keeps over hibernation. */
export interface ConnectionMemory {
  principal: Principal;
}

/** What a connection may ask of the conversation. */
export interface ConnectionPorts {
  /** The frames to begin with. */
  opening(principal: Principal, from: number | undefined): Iterable<OpeningSlice>;
  startTurn(principal: Principal, input: StartTurn): Promise<StartedTurn>;
  /** Resolves when the result is recorded, now or before. */
  submitResult(principal: Principal, frame: Extract<ClientFrame, { type: "tool.result" }>): Promise<void>;
  /** Open connections, this one included. */
  connections(): number;
  now(): number;
}

export type Client = Connection<ConnectionMemory>;

export function openConnection(
  host: ConnectionPorts,
  client: Client,
  principal: Principal,
  from?: number,
): void {
  const refuse = (error: unknown, closeCode?: number) => {
    const { code, message, retriable } = reported(error);
    sendFrames(client, [ephemeralFrame("error", { code, message, retriable }, {}, host.now())]);
    client.close(closeCode ?? (retriable ? CONTINUE_LATER : NOT_FOUND_CLOSE), code);
  };
  if (host.connections() > MAX_WATCHERS) {
    refuse(tooManyWatchers(), FLOOD_CLOSE);
    return;
  }
  if (hasExpired(principal, host.now())) {
    closeUnauthorized(client);
    return;
  }
  try {
    let sent = 0;
    for (const { frames, last } of host.opening(principal, from)) {
      sent += sendFrames(client, frames);
      if (last || sent <= MAX_OPENING_LENGTH) continue;
      client.close(CONTINUE_LATER, "Come back with the last number.");
      return;
    }
    // Only now: what the opening flushes to those who watch already is in this client's opening itself.
    client.setState({ principal });
  } catch (error) {
    refuse(error);
  }
}

/** What connections have left to send. An actor hibernates when it was idle for so long that each is full again. */
const allowances = new WeakMap<Client, Allowance>();

/** Whether a message may be looked at. Closes the connection that has expired, or sends too much. */
export function admit(host: ConnectionPorts, client: Client, message: WSMessage): boolean {
  // What the client had sent before its connection was closed may still arrive.
  if (client.readyState !== WebSocket.OPEN) return false;
  const now = host.now();
  if (client.state !== null && hasExpired(client.state.principal, now)) {
    closeUnauthorized(client);
    return false;
  }
  const left = spend(allowances.get(client), lengthOf(message), now);
  if (left !== null) {
    allowances.set(client, left);
    return true;
  }
  const error = {
    code: "RATE_LIMITED",
    message: "Too much at once. Connect again in a moment.",
    retriable: true,
  };
  sendFrames(client, [ephemeralFrame("error", error, {}, now)]);
  client.close(FLOOD_CLOSE, error.code);
  return false;
}

/** Acts on a message that was admitted. */
export async function receiveFrame(host: ConnectionPorts, client: Client, message: WSMessage): Promise<void> {
  let ref: string | undefined;
  try {
    const value = parseMessage(message);
    ref = refOf(value);
    const frame = parseClientFrame(value);
    // SAFETY: the state is the plain data that `openConnection` put there; the SDK's type only freezes it.
    const principal = client.state?.principal as Principal | undefined;
    if (principal === undefined) throw new DramatisError("UNAUTHENTICATED", "Connect again.");
    switch (frame.type) {
      case "ping":
        sendFrames(client, [ephemeralFrame("pong", {}, {}, host.now())]);
        return;
      case "turn.start":
        sendFrames(client, await startTurn(host, principal, frame));
        return;
      case "tool.result":
        await host.submitResult(principal, frame);
        return;
      default:
        frame satisfies never;
    }
  } catch (error) {
    const { code, message: text, retriable } = reported(error);
    const data = { code, message: text, retriable, ...defined({ ref }) };
    sendFrames(client, [ephemeralFrame("error", data, {}, host.now())]);
  }
}

/** Answers what this client alone is told. */
async function startTurn(
  host: ConnectionPorts,
  principal: Principal,
  { v: _v, type: _type, id, ...input }: Extract<ClientFrame, { type: "turn.start" }>,
): Promise<Frame[]> {
  const { content } = input;
  const { repeated, turnId, messageId } = await host.startTurn(principal, { ...input, idempotencyKey: id });
  // Whoever sends again has not seen it recorded, and what was recorded is not published twice.
  if (!repeated) return [];
  return [ephemeralFrame("message.user", { clientId: id, content }, { turnId, messageId }, host.now())];
}

/**
 * Sends frames to every connection that had its opening; the others get them with it. Closes those that have expired,
 * also when there is nothing to send.
 */
export function broadcast(clients: Iterable<Client>, frames: readonly Frame[], now: number): void {
  const opened = [...clients].filter(({ state }) => state !== null);
  if (opened.length === 0) return;
  const texts = frames.map((frame) => JSON.stringify(frame));
  for (const client of opened) {
    if (client.state !== null && hasExpired(client.state.principal, now)) closeUnauthorized(client);
    else sendTexts(client, texts);
  }
}

/** When the next connection expires; `Infinity` if none does. */
export function nextExpiry(clients: Iterable<Client>): number {
  return Math.min(...[...clients].map(({ state }) => state?.principal.expiresAt ?? Infinity));
}

/** The refusal of one more who wants to watch. */
export function tooManyWatchers(): DramatisError {
  const message = `At most ${MAX_WATCHERS} may watch a conversation at once; try again later.`;
  return new DramatisError("RATE_LIMITED", message, { retriable: true });
}

function closeUnauthorized(client: Client): void {
  client.close(UNAUTHORIZED_CLOSE, "UNAUTHENTICATED");
}

/** Answers how many characters that were. */
function sendFrames(client: Client, frames: readonly Frame[]): number {
  const texts = frames.map((frame) => JSON.stringify(frame));
  sendTexts(client, texts);
  return texts.reduce((sum, text) => sum + text.length, 0);
}

function sendTexts(client: Client, texts: readonly string[]): void {
  try {
    for (const text of texts) client.send(text);
  } catch {
    // The socket closed a moment ago; its client comes back with the last number it saw.
  }
}

function reported(error: unknown) {
  if (!(error instanceof DramatisError)) console.error(error);
  return toErrorData(error);
}

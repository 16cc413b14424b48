/**
 * WebSocket clients of a conversation. Connections hibernate: what one needs after a wake is in its own state.
 *
 * CONN-1  A connection first gets a snapshot, or, with `from`, what it missed; then every frame once, in order. One that
 *         missed too much for its buffer is closed in between, and comes back with the last number it got.
 * CONN-2  What a client sends is validated; a bad frame is answered with `error` and changes nothing.
 * CLOSE-1  A connection that cannot be opened for now is closed with 1013, so its client comes back; only one that can
 *         never be opened is turned away for good, with 4404.
 */
import type { Connection, WSMessage } from "agents";
import { type ClientFrame, clientFrameSchema, type Frame } from "../../client/protocol.ts";
import { DramatisError, toErrorData } from "../../shared/errors.ts";
import { isJsonObject } from "../../shared/json.ts";
import type { Principal } from "../../shared/principal.ts";
import { validate } from "../../shared/validation.ts";
import { ephemeralFrame } from "./frames.ts";
import { MAX_KEY_LENGTH } from "./signals.ts";
import type { OpeningSlice } from "./subscribers.ts";

/** A frame from a client has at most this many UTF-16 units. */
const MAX_FRAME_LENGTH = 2 * 1024 * 1024;
/** Characters that a connection is given at once when it opens: they wait in the actor's memory. */
const MAX_OPENING_LENGTH = 8 * 1024 * 1024;
/** The close code that asks a client to connect again. */
const CONTINUE_LATER = 1013;

/** What a connection keeps over hibernation. */
export interface ConnectionMemory {
  principal: Principal;
}

/** What a connection may ask of the conversation. */
export interface ConnectionHost {
  /** The frames to begin with. */
  opening(principal: Principal, from: number | undefined): Iterable<OpeningSlice>;
  /** Answers what this client alone is told. */
  startTurn(principal: Principal, frame: Extract<ClientFrame, { type: "turn.start" }>): Promise<Frame[]>;
  now(): number;
}

type Client = Connection<ConnectionMemory>;

export function openConnection(
  host: ConnectionHost,
  client: Client,
  principal: Principal,
  from?: number,
): void {
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
    const { code, message, retriable } = reported(error);
    sendFrames(client, [ephemeralFrame("error", { code, message, retriable }, {}, host.now())]);
    client.close(retriable ? CONTINUE_LATER : 4404, code);
  }
}

export async function receiveFrame(host: ConnectionHost, client: Client, message: WSMessage): Promise<void> {
  let ref: string | undefined;
  try {
    const value = parseText(message);
    ref = refOf(value);
    const frame = parseFrame(value);
    const principal = client.state?.principal;
    if (principal === undefined) throw new DramatisError("UNAUTHENTICATED", "Connect again.");
    switch (frame.type) {
      case "ping":
        sendFrames(client, [ephemeralFrame("pong", {}, {}, host.now())]);
        return;
      case "turn.start":
        // SAFETY: the state is the plain data that `openConnection` put there; the SDK's type only freezes it.
        sendFrames(client, await host.startTurn(principal as Principal, frame));
        return;
      default:
        frame satisfies never;
    }
  } catch (error) {
    const { code, message: text, retriable } = reported(error);
    const data = { code, message: text, retriable, ...(ref === undefined ? {} : { ref }) };
    sendFrames(client, [ephemeralFrame("error", data, {}, host.now())]);
  }
}

/** Sends frames to every connection that had its opening; the others get them with it. */
export function broadcast(clients: Iterable<Client>, frames: readonly Frame[]): void {
  const opened = [...clients].filter((client) => client.state !== null);
  if (opened.length === 0) return;
  const texts = frames.map((frame) => JSON.stringify(frame));
  for (const client of opened) sendTexts(client, texts);
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

function parseText(message: WSMessage): unknown {
  if (typeof message !== "string") throw new DramatisError("INVALID_JSON", "Send frames as JSON text.");
  if (message.length > MAX_FRAME_LENGTH)
    throw new DramatisError("TOO_LARGE", "A frame may have at most 2 MiB.");
  try {
    return JSON.parse(message);
  } catch {
    throw new DramatisError("INVALID_JSON", "The frame is not JSON.");
  }
}

/** The id of a frame, if it is one that an answer can repeat. */
function refOf(value: unknown): string | undefined {
  if (!isJsonObject(value) || typeof value.id !== "string") return undefined;
  const { id } = value;
  return id !== "" && id.length <= MAX_KEY_LENGTH && id.isWellFormed() ? id : undefined;
}

function parseFrame(value: unknown): ClientFrame {
  try {
    return validate(clientFrameSchema, value);
  } catch (error) {
    const first = error instanceof DramatisError ? error.options.errors?.[0] : undefined;
    const detail =
      first === undefined ? "it does not fit the protocol" : `${first.path || "/"}: ${first.message}`;
    throw new DramatisError("INVALID_SIGNAL", `The frame was refused: ${detail}`);
  }
}

function reported(error: unknown) {
  if (!(error instanceof DramatisError)) console.error(error);
  return toErrorData(error);
}

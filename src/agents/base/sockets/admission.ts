/**
 * Admits the messages of WebSockets within the allowance of each connection.
 *
 * FLOOD-1  In any span of time a connection may send at most the burst plus the refill of that time.
 */
import type { WSMessage } from "agents";
import { DramatisError } from "../../../shared/errors.ts";
import { hasExpired } from "../../../shared/principal.ts";
import { returnToken, type TokenBucket, takeToken, tokenBucket } from "../../../shared/token-bucket.ts";
import type { Client } from "./client.ts";

/**
 * Rates of one connection: frames, and their length in UTF-16 units. Both buckets fill up within the ten idle seconds that pass before an
 * actor hibernates.
 */
export const FLOOD = {
  frames: { burst: 100, perMinute: 600 },
  length: { burst: 8 * 1024 * 1024, perMinute: 60 * 1024 * 1024 },
} as const;

/** The remaining allowance of a connection. */
export interface Allowance {
  frames: TokenBucket;
  length: TokenBucket;
}

const FULL: Allowance = { frames: tokenBucket(FLOOD.frames), length: tokenBucket(FLOOD.length) };

/**
 * Returns the allowance after a frame of this length; `null` if the rest is too small. `undefined` is a full allowance. A frame longer than
 * the burst takes all of it; the parser refuses the frame.
 */
export function spend(before: Allowance | undefined, length: number, now: number): Allowance | null {
  const left = before ?? FULL;
  const frames = takeToken(left.frames, 1, now);
  const lengths = takeToken(left.length, length, now);
  return frames.allowed && lengths.allowed ? { frames: frames.bucket, length: lengths.bucket } : null;
}

/** Closes a connection that has expired, or that exceeds its allowance. */
export interface Refusals {
  expired(): void;
  flooded(error: DramatisError): void;
}

/** Remaining allowances. Hibernation clears them; by then each has refilled. */
const allowances = new WeakMap<Client, Allowance>();

/** Reports whether a message may be read. Otherwise it refuses the connection. */
export function admitMessage(client: Client, message: WSMessage, now: number, refusals: Refusals): boolean {
  // Messages that were sent before the connection was closed may still arrive.
  if (client.readyState !== WebSocket.OPEN) return false;
  if (client.state !== null && hasExpired(client.state.principal, now)) {
    refusals.expired();
    return false;
  }
  const left = spend(allowances.get(client), messageLength(message), now);
  if (left !== null) {
    allowances.set(client, left);
    return true;
  }
  const tooMuch = "The connection sent too much at once. Connect again in a moment.";
  refusals.flooded(new DramatisError("RATE_LIMITED", tooMuch, { retriable: true }));
  return false;
}

/** Gives the allowance of one message back, for a message that the server has asked for. */
export function giveBack(client: Client): void {
  const left = allowances.get(client);
  if (left !== undefined) allowances.set(client, { ...left, frames: returnToken(left.frames) });
}

/** Returns the UTF-16 units of a text, or the bytes of binary data. */
export function messageLength(message: WSMessage): number {
  return typeof message === "string" ? message.length : message.byteLength;
}

/** Admits the messages of WebSockets within the allowance of each connection. */
import type { WSMessage } from "agents";
import { DramatisError } from "../../../shared/errors.ts";
import { hasExpired } from "../../../shared/principal.ts";
import { returnToken } from "../../../shared/token-bucket.ts";
import type { Client } from "./client.ts";
import { type Allowance, spend } from "./flood.ts";

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

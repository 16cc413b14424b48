/**
 * Opening and reopening of a WebSocket to a conversation: token, place to resume, backoff and final closes.
 *
 * ADMIT-1  Each attempt to connect requests the token anew.
 * ADMIT-2  After a close with 4401 the client connects once more if the token is a function. After a second 4401 without a
 *          frame in between it stays closed.
 * ADMIT-3  After a close with 4429 the next attempt waits.
 */
import { BEARER_PREFIX, FLOOD_CLOSE, SUBPROTOCOL, UNAUTHORIZED_CLOSE } from "../protocol/frames.ts";
import { currentToken, type Token } from "./requests.ts";

/** A WebSocket constructor, as far as a reconnecting socket uses it. */
export type WebSocketClass = new (url: string, protocols?: string | string[]) => WebSocket;

/** Wait after a close with 4429, in milliseconds. */
const FLOOD_WAIT_MS = 5_000;

/**
 * Backoff between attempts, in milliseconds. The first delay is random per client, so that many clients that lost their
 * connection together do not return together.
 */
export const BACKOFF = {
  minReconnectionDelay: 300 + Math.round(Math.random() * 500),
  maxReconnectionDelay: 10_000,
  reconnectionDelayGrowFactor: 1.7,
  minUptime: 3_000,
};

/** Decides on the token of each attempt, and whether and when to reconnect. */
export class ReconnectPolicy {
  token: Token | undefined;
  #refusals = 0;
  #notBefore = 0;

  constructor(token: Token | undefined) {
    this.token = token;
  }

  /** Returns the subprotocols of the next attempt, once it may be made. */
  readonly protocols = async (): Promise<string[]> => {
    const wait = this.#notBefore - Date.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    const token = await currentToken(this.token);
    return token === undefined ? [SUBPROTOCOL] : [SUBPROTOCOL, `${BEARER_PREFIX}${token}`];
  };

  /** Records that the server accepted the connection: it sent a frame. */
  accepted(): void {
    this.#refusals = 0;
  }

  /** Reports whether to reconnect after a close. Call it once for each close. */
  readonly shouldReconnect = ({ code }: { code: number }): boolean => {
    switch (code) {
      case UNAUTHORIZED_CLOSE:
        this.#refusals += 1;
        return typeof this.token === "function" && this.#refusals === 1;
      case FLOOD_CLOSE:
        this.#notBefore = Date.now() + FLOOD_WAIT_MS;
        return true;
      default:
        return !isFinalClose(code);
    }
  };
}

/** Reports whether a close code is final: the same request would fail again. */
export function isFinalClose(code: number): boolean {
  return code === 1008 || (code >= 4000 && code <= 4999);
}

/** Creates a WebSocket class whose every attempt resumes after the last applied frame. */
export function resumingWebSocket(
  resumeFrom: () => number | null,
  Base?: WebSocketClass | undefined,
): WebSocketClass {
  function ResumingWebSocket(url: string, protocols?: string | string[]): WebSocket {
    return new (Base ?? WebSocket)(resumeUrl(url, resumeFrom()), protocols);
  }
  // SAFETY: `new` on a function that returns an object gives that object. A subclass would need `WebSocket` when the module
  // loads, and a server that renders the page may have none.
  return ResumingWebSocket as unknown as WebSocketClass;
}

/** Adds the place to resume to an address. `null` requests a snapshot. */
export function resumeUrl(url: string, from: number | null): string {
  if (from === null) return url;
  const resumed = new URL(url);
  resumed.searchParams.set("from", String(from));
  return resumed.href;
}

/** Splits `https://example.com` into host and WebSocket protocol. A bare host has no protocol. */
export function parseHost(host: string): { host: string; protocol?: "ws" | "wss" } {
  const match = /^(https?|wss?):\/\/([^/]+)\/?$/.exec(host);
  if (match === null) return { host };
  const [, scheme, name = host] = match;
  return { host: name, protocol: scheme === "https" || scheme === "wss" ? "wss" : "ws" };
}

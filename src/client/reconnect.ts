/**
 * Opens and reopens a WebSocket to a conversation: token, place to resume, backoff and final closes.
 *
 * ADMIT-1  Each attempt to connect requests a new token.
 * ADMIT-2  After a close with 4401 the client connects once more if the token is a function. After a second 4401 without a frame in between
 *          it stays closed.
 * ADMIT-3  After a close with 4429 the next attempt waits.
 * ADMIT-4  The first attempt after a loss waits at most 50 ms, so a turn soon continues. For five seconds, the next attempts wait at most
 *          250 ms. Then they wait at most a quarter of the time since the loss, up to 10 s. Each wait is random, so that many clients do
 *          not reconnect at the same time. If a connection lasts less than a second, its end continues the loss before it. `atOnce` ends
 *          every wait except for ADMIT-3.
 * ADMIT-5  A closed client has no pending waits.
 * ADMIT-6  In a page, a lost connection is retried at once when the network returns and when the page becomes visible.
 */
import type { Clock } from "../ports/clock.ts";
import { BEARER_PREFIX, FLOOD_CLOSE, SUBPROTOCOL, UNAUTHORIZED_CLOSE } from "../protocol/frames.ts";
import { runtimeClock } from "./clock.ts";
import { currentToken, type Token } from "./requests.ts";

/** A WebSocket constructor, as far as a reconnecting socket uses it. */
export type WebSocketClass = new (url: string, protocols?: string | string[]) => WebSocket;

/** Wait after a close with 4429, in milliseconds. */
const FLOOD_WAIT_MS = 5_000;

/** The longest wait of the first attempt after a loss, in milliseconds. */
const FIRST_WAIT_MS = 50;
/** Duration of frequent attempts after a loss, and their longest wait, in milliseconds. */
const FREQUENT_MS = 5_000;
const FREQUENT_WAIT_MS = 250;
/** The longest wait of any attempt, in milliseconds. */
const MAX_WAIT_MS = 10_000;
/** A connection counts as stable after this time, in milliseconds. */
const STABLE_MS = 1_000;

/** Options of the reconnecting socket. They disable its backoff, because `ReconnectPolicy` waits. */
export const NO_BACKOFF = {
  minReconnectionDelay: 0,
  maxReconnectionDelay: 0,
  reconnectionDelayGrowFactor: 1,
};

/** Returns the wait of an attempt, in milliseconds (ADMIT-4). `random` is from 0 up to 1. */
export function waitAfterLoss(lostForMs: number, random: number): number {
  const quarter = lostForMs / 4;
  const longest =
    lostForMs < FREQUENT_MS
      ? Math.min(Math.max(quarter, FIRST_WAIT_MS), FREQUENT_WAIT_MS)
      : Math.min(quarter, MAX_WAIT_MS);
  const shortest = lostForMs === 0 ? 0 : longest / 2;
  return shortest + random * (longest - shortest);
}

export interface ReconnectPorts {
  clock: Pick<Clock, "now" | "timer">;
  /** Returns a number from 0 up to, not including, 1. */
  random(): number;
}

/** Decides on the token of each attempt, and whether and when to reconnect. */
export class ReconnectPolicy {
  token: Token | undefined;
  readonly #ports: ReconnectPorts;
  #refusals = 0;
  #notBefore = 0;
  /** When the connection was lost, or `null`. */
  #lostAt: number | null = null;
  /** When the current connection opened, or `null`. */
  #openedAt: number | null = null;
  /** The next attempt does not wait, because it is the first or was requested. */
  #isAtOnce = true;
  #isClosed = false;
  #endWait: (() => void) | null = null;

  constructor(
    token: Token | undefined,
    ports: ReconnectPorts = { clock: runtimeClock, random: Math.random },
  ) {
    this.token = token;
    this.#ports = ports;
  }

  /** Waits until the next attempt is due. Returns its subprotocols, which contain the token of that moment. */
  readonly nextAttempt = async (): Promise<string[]> => {
    const { clock } = this.#ports;
    await this.#wait(this.#nextWait());
    // Begins again where `atOnce` ends it.
    while (!this.#isClosed && this.#notBefore > clock.now()) {
      await this.#wait(this.#notBefore - clock.now());
    }
    const token = await currentToken(this.token);
    return token === undefined ? [SUBPROTOCOL] : [SUBPROTOCOL, `${BEARER_PREFIX}${token}`];
  };

  /** Ends the wait of the current attempt, or skips the wait of the next attempt. Call it before reconnecting. */
  readonly atOnce = (): void => {
    this.#isClosed = false;
    this.#lostAt = null;
    this.#openedAt = null;
    if (this.#endWait === null) this.#isAtOnce = true;
    else this.#endWait();
  };

  /** Ends the waits of the current attempt, because a closed socket drops them. Call it before closing the socket for good. */
  readonly close = (): void => {
    this.#isClosed = true;
    this.#endWait?.();
  };

  opened(): void {
    this.#isClosed = false;
    this.#openedAt = this.#ports.clock.now();
  }

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
        this.#notBefore = this.#ports.clock.now() + FLOOD_WAIT_MS;
        return true;
      default:
        return !isFinalClose(code);
    }
  };

  #nextWait(): number {
    const now = this.#ports.clock.now();
    const isStable = this.#openedAt !== null && now - this.#openedAt >= STABLE_MS;
    this.#openedAt = null;
    if (this.#isAtOnce) {
      this.#isAtOnce = false;
      return 0;
    }
    if (this.#lostAt === null || isStable) this.#lostAt = now;
    return waitAfterLoss(now - this.#lostAt, this.#ports.random());
  }

  async #wait(milliseconds: number): Promise<void> {
    if (milliseconds === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#ports.clock.timer(milliseconds, resolve);
      this.#endWait = () => {
        cancel();
        resolve();
      };
    });
    this.#endWait = null;
  }
}

/**
 * Calls the listener when the network of a page returns and when the page becomes visible (ADMIT-6). Returns a function that removes the
 * listener. A no-op outside of pages.
 */
export function whenBack(listener: () => void): () => void {
  // SAFETY: pages have these members under these names. Outside of pages they are undefined.
  const { window, document } = globalThis as {
    window?: EventTarget;
    document?: EventTarget & { visibilityState: string };
  };
  const shown = () => {
    if (document?.visibilityState === "visible") listener();
  };
  window?.addEventListener("online", listener);
  document?.addEventListener("visibilitychange", shown);
  return () => {
    window?.removeEventListener("online", listener);
    document?.removeEventListener("visibilitychange", shown);
  };
}

/** Reports whether a close code is final: the same request would fail again. */
export function isFinalClose(code: number): boolean {
  return code === 1008 || (code >= 4000 && code <= 4999);
}

/** Creates a WebSocket class that resumes each attempt after the last applied frame. */
export function resumingWebSocket(
  resumeFrom: () => number | null,
  Base?: WebSocketClass | undefined,
): WebSocketClass {
  function ResumingWebSocket(url: string, protocols?: string | string[]): WebSocket {
    return new (Base ?? WebSocket)(resumeUrl(url, resumeFrom()), protocols);
  }
  // SAFETY: `new` on a function that returns an object gives that object. A subclass would need `WebSocket` when the module loads, and a
  // server that renders the page may lack it.
  return ResumingWebSocket as unknown as WebSocketClass;
}

/** Adds the place to resume to an address, and the promise of acknowledgements. `null` requests a snapshot. */
export function resumeUrl(url: string, from: number | null): string {
  const resumed = new URL(url);
  resumed.searchParams.set("acks", "1");
  if (from !== null) resumed.searchParams.set("from", String(from));
  return resumed.href;
}

/** Splits `https://example.com` into host and WebSocket protocol. A bare host has no protocol. */
export function parseHost(host: string): { host: string; protocol?: "ws" | "wss" } {
  const match = /^(https?|wss?):\/\/([^/]+)\/?$/.exec(host);
  if (match === null) return { host };
  const [, scheme, name = host] = match;
  return { host: name, protocol: scheme === "https" || scheme === "wss" ? "wss" : "ws" };
}

/** Returns the address of the HTTP API of a socket's server: `http://` or `https://`, without a path. */
export function httpOrigin({ roomUrl }: { roomUrl: string }): string {
  return new URL(roomUrl).origin.replace(/^ws/, "http");
}

/** How a WebSocket to a conversation is opened and reopened: where it resumes, how long it waits, when it gives up. */

/** The part of the WebSocket constructor that a reconnecting socket uses. */
export type WebSocketClass = new (url: string, protocols?: string | string[]) => WebSocket;

/**
 * Waiting between attempts to connect, in milliseconds. The first wait differs from client to client, so that
 * many that were cut off together do not return together.
 */
export const reconnection = {
  minReconnectionDelay: 300 + Math.round(Math.random() * 500),
  maxReconnectionDelay: 10_000,
  reconnectionDelayGrowFactor: 1.7,
  minUptime: 3_000,
};

/**
 * A WebSocket class that asks, at each attempt anew, for what came after the last durable frame. The URL is the one
 * thing that changes between attempts, so it is completed here and not by whoever rebuilds the socket.
 */
export function resumingWebSocket(
  from: () => number | null,
  base?: WebSocketClass | undefined,
): WebSocketClass {
  function ResumingWebSocket(url: string, protocols?: string | string[]): WebSocket {
    return new (base ?? WebSocket)(resumeUrl(url, from()), protocols);
  }
  // SAFETY: a function that returns an object is a constructor of it. A subclass would need the class already when the
  // module is rendered on a server, where there may be none.
  return ResumingWebSocket as unknown as WebSocketClass;
}

/** The address of a connection that continues after a journal entry; `null` asks for a snapshot. */
export function resumeUrl(url: string, from: number | null): string {
  if (from === null) return url;
  const resumed = new URL(url);
  resumed.searchParams.set("from", String(from));
  return resumed.href;
}

/** The server has spoken its last word with this close code: coming back with the same request is no use. */
export function isFinalClose(code: number): boolean {
  return code === 1008 || (code >= 4000 && code <= 4999);
}

/** Host and protocol of `https://example.com`, `http://127.0.0.1:8787` or a bare `example.com`. */
export function parseHost(host: string): { host: string; protocol?: "ws" | "wss" } {
  const match = /^(https?|wss?):\/\/([^/]+)\/?$/.exec(host);
  if (match === null) return { host };
  const [, scheme, name = host] = match;
  return { host: name, protocol: scheme === "https" || scheme === "wss" ? "wss" : "ws" };
}

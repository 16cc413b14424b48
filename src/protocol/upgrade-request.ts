/** The internal request that passes a WebSocket upgrade from the Worker to an actor. */
import type { Principal } from "../shared/principal.ts";

/** `plain` connections get our frames only; `sdk` connections may get the SDK's own messages first. */
export type Entrance = "plain" | "sdk";

const PRINCIPAL_HEADER = "x-dramatis-principal";
const ENTRANCE_HEADER = "x-dramatis-entrance";
const HANDSHAKE_HEADERS = ["sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions"];

/** The options of a WebSocket, as its client sets them. */
export interface SocketOptions {
  /**
   * Number of the client's last complete entry. Absent: a conversation begins with a snapshot, a run with its first
   * entry.
   */
  from?: number;
  /** The client answers each `mark` with an `ack`. */
  acks: boolean;
}

/** Returns the request for the actor: the handshake's headers, the principal, and checked options (DOOR-1). */
export function entranceRequest(
  request: Request,
  principal: Principal,
  id: string,
  entrance: Entrance,
  { from, acks }: SocketOptions,
): Request {
  const headers = new Headers({
    upgrade: "websocket",
    [PRINCIPAL_HEADER]: encodeURIComponent(JSON.stringify(principal)),
    [ENTRANCE_HEADER]: entrance,
  });
  for (const name of HANDSHAKE_HEADERS) {
    const value = request.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  const url = new URL(`http://actor/${id}`);
  if (from !== undefined) url.searchParams.set("from", String(from));
  if (acks) url.searchParams.set("acks", "1");
  return new Request(url, { headers });
}

/** Reads a request of `entranceRequest`; returns `null` for any other. */
export function readEntrance(
  request: Request,
): { principal: Principal; entrance: Entrance; options: SocketOptions } | null {
  const principal = request.headers.get(PRINCIPAL_HEADER);
  const entrance = request.headers.get(ENTRANCE_HEADER);
  if (principal === null || (entrance !== "plain" && entrance !== "sdk")) return null;
  const { searchParams } = new URL(request.url);
  const from = searchParams.get("from");
  return {
    // SAFETY: only `entranceRequest` sets this header; a client's headers never reach an actor (DOOR-1).
    principal: JSON.parse(decodeURIComponent(principal)) as Principal,
    entrance,
    options: {
      ...(from === null ? {} : { from: Number(from) }),
      acks: searchParams.has("acks"),
    },
  };
}

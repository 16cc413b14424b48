/** The internal request that passes a WebSocket upgrade from the Worker to an actor. */
import type { Principal } from "../shared/principal.ts";
import type { FrameFilter } from "./frame-filter.ts";

/** `plain` connections get our frames only; `sdk` connections may get the SDK's own messages first. */
export type SocketProtocol = "plain" | "sdk";

const PRINCIPAL_HEADER = "x-dramatis-principal";
const PROTOCOL_HEADER = "x-dramatis-protocol";
const HANDSHAKE_HEADERS = ["sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions"];

export interface SocketOptions extends FrameFilter {
  /** Number of the client's last complete entry. Absent: a conversation begins with a snapshot, a run with its first entry. */
  from?: number;
  /** The client answers each `mark` with an `ack`. */
  acks: boolean;
}

/** Returns the request for the actor: the handshake's headers, the principal, and checked options (SOCKET-1). */
export function upgradeRequest(
  request: Request,
  principal: Principal,
  id: string,
  protocol: SocketProtocol,
  { from, acks, types, deltas }: SocketOptions,
): Request {
  const headers = new Headers({
    upgrade: "websocket",
    [PRINCIPAL_HEADER]: encodeURIComponent(JSON.stringify(principal)),
    [PROTOCOL_HEADER]: protocol,
  });
  for (const name of HANDSHAKE_HEADERS) {
    const value = request.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  const url = new URL(`http://actor/${id}`);
  if (from !== undefined) url.searchParams.set("from", String(from));
  if (acks) url.searchParams.set("acks", "1");
  if (types !== undefined) url.searchParams.set("types", types.join());
  if (deltas === false) url.searchParams.set("deltas", "false");
  return new Request(url, { headers });
}

/** Reads a request of `upgradeRequest`; returns `null` for any other. */
export function readUpgrade(
  request: Request,
): { principal: Principal; protocol: SocketProtocol; options: SocketOptions } | null {
  const principal = request.headers.get(PRINCIPAL_HEADER);
  const protocol = request.headers.get(PROTOCOL_HEADER);
  if (principal === null || (protocol !== "plain" && protocol !== "sdk")) return null;
  const { searchParams } = new URL(request.url);
  const [from, types] = [searchParams.get("from"), searchParams.get("types")];
  return {
    // SAFETY: only `upgradeRequest` sets this header; a client's headers never reach an actor (SOCKET-1).
    principal: JSON.parse(decodeURIComponent(principal)) as Principal,
    protocol,
    options: {
      ...(from === null ? {} : { from: Number(from) }),
      acks: searchParams.has("acks"),
      // SAFETY: `upgradeRequest` got them checked (SOCKET-1).
      ...(types === null ? {} : { types: types.split(",") as NonNullable<FrameFilter["types"]> }),
      ...(searchParams.has("deltas") ? { deltas: false } : {}),
    },
  };
}

/** The internal request with which the Worker passes a WebSocket upgrade to a conversation. */
import type { Principal } from "../shared/principal.ts";

/** `plain` connections get our frames only; `sdk` connections may get the SDK's own messages first. */
export type Entrance = "plain" | "sdk";

const PRINCIPAL_HEADER = "x-dramatis-principal";
const ENTRANCE_HEADER = "x-dramatis-entrance";
const HANDSHAKE_HEADERS = ["sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions"];

/** Returns the request for the actor: the handshake's headers, the principal, and a checked `from` (DOOR-1). */
export function entranceRequest(
  request: Request,
  principal: Principal,
  id: string,
  entrance: Entrance,
  from: number | undefined,
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
  const query = from === undefined ? "" : `?from=${from}`;
  return new Request(`http://actor/conversations/${id}${query}`, { headers });
}

/** Reads a request of `entranceRequest`; returns `null` for any other. */
export function readEntrance(
  request: Request,
): { principal: Principal; entrance: Entrance; from: number | undefined } | null {
  const principal = request.headers.get(PRINCIPAL_HEADER);
  const entrance = request.headers.get(ENTRANCE_HEADER);
  if (principal === null || (entrance !== "plain" && entrance !== "sdk")) return null;
  const from = new URL(request.url).searchParams.get("from");
  return {
    // SAFETY: only `entranceRequest` sets this header; a client's headers never reach an actor (DOOR-1).
    principal: JSON.parse(decodeURIComponent(principal)) as Principal,
    entrance,
    from: from === null ? undefined : Number(from),
  };
}

/**
 * The token of a request, and the subprotocols of WebSocket clients.
 *
 * BEARER-1  A token comes in `Authorization: Bearer`. A browser cannot set that header on a WebSocket, so an upgrade
 *           may send the subprotocol `bearer.<token>` next to `dramatis.v1`. The token is never read from a URL.
 * BEARER-2  The answer to an upgrade names `dramatis.v1` if the client offered it, and never the token.
 * BEARER-3  A refused WebSocket client that offered `dramatis.v1` gets the close code 4401, or 4404 for an invalid
 *           conversation id: browsers hide the HTTP status from pages.
 */
import { BEARER_PREFIX, NOT_FOUND_CLOSE, SUBPROTOCOL, UNAUTHORIZED_CLOSE } from "../../protocol/frames.ts";

/** Returns the token of a request; `null` without one, or with another scheme than `Bearer`. */
export function bearerToken(request: Request): string | null {
  const [, token] = /^bearer +(.+)$/i.exec(request.headers.get("authorization") ?? "") ?? [];
  if (token !== undefined) return token;
  if (!isUpgrade(request)) return null;
  const offer = offeredProtocols(request).find((protocol) => protocol.startsWith(BEARER_PREFIX));
  return offer === undefined ? null : offer.slice(BEARER_PREFIX.length);
}

export function isUpgrade(request: Request): boolean {
  return request.headers.get("upgrade")?.toLowerCase() === "websocket";
}

/** Adds our subprotocol to the answer of an upgrade if the client offered it. Browsers require it. */
export function withProtocol(request: Request, response: Response): Response {
  const { webSocket } = response;
  if (webSocket === null || !offeredProtocols(request).includes(SUBPROTOCOL)) return response;
  return new Response(null, { status: 101, webSocket, headers: { "sec-websocket-protocol": SUBPROTOCOL } });
}

/** The close codes and their reasons, by HTTP status. */
const CLOSES = new Map<number, readonly [code: number, reason: string]>([
  [401, [UNAUTHORIZED_CLOSE, "UNAUTHENTICATED"]],
  [404, [NOT_FOUND_CLOSE, "NOT_FOUND"]],
]);

/** Converts a 401 or 404 to a closing WebSocket for clients that cannot read the status (BEARER-3). */
export function legibleRefusal(request: Request, response: Response): Response {
  const readsCodes = isUpgrade(request) && offeredProtocols(request).includes(SUBPROTOCOL);
  const close = CLOSES.get(response.status);
  if (close === undefined || !readsCodes) return response;
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  server.close(...close);
  return withProtocol(request, new Response(null, { status: 101, webSocket: client }));
}

function offeredProtocols(request: Request): string[] {
  const offers = request.headers.get("sec-websocket-protocol");
  return offers === null ? [] : offers.split(",").map((offer) => offer.trim());
}

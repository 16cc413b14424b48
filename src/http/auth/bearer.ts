/**
 * Where a request carries its token, and how a WebSocket client speaks of one.
 *
 * BEARER-1  A token comes in `Authorization: Bearer`, or, because a browser cannot set that on a WebSocket, as the
 *           subprotocol `bearer.<token>` beside `dramatis.v1` on an upgrade. It is never read from a URL.
 * BEARER-2  The answer to an upgrade names `dramatis.v1` where it was offered, and never the token.
 * BEARER-3  A WebSocket client that offers `dramatis.v1` and is not let in gets the close code 4401, or 4404 where no
 *           conversation can be: of an HTTP status a browser tells a page nothing.
 */
import { BEARER_PREFIX, NOT_FOUND_CLOSE, SUBPROTOCOL, UNAUTHORIZED_CLOSE } from "../../protocol/frames.ts";

/** The token of a request as it was sent; `null` where there is none, also under another scheme. */
export function bearerToken(request: Request): string | null {
  const [, token] = /^bearer +(.+)$/i.exec(request.headers.get("authorization") ?? "") ?? [];
  if (token !== undefined) return token;
  if (!isUpgrade(request)) return null;
  const offer = offeredProtocols(request).find((protocol) => protocol.startsWith(BEARER_PREFIX));
  return offer === undefined ? null : offer.slice(BEARER_PREFIX.length);
}

/** Whether a request asks for a WebSocket. */
export function isUpgrade(request: Request): boolean {
  return request.headers.get("upgrade")?.toLowerCase() === "websocket";
}

/** The answer to an upgrade, naming our protocol where the client offered it: without that a browser hangs up. */
export function withProtocol(request: Request, response: Response): Response {
  const { webSocket } = response;
  if (webSocket === null || !offeredProtocols(request).includes(SUBPROTOCOL)) return response;
  return new Response(null, { status: 101, webSocket, headers: { "sec-websocket-protocol": SUBPROTOCOL } });
}

/** The close codes, and their reasons, that stand for a status. */
const CLOSES = new Map<number, readonly [code: number, reason: string]>([
  [401, [UNAUTHORIZED_CLOSE, "UNAUTHENTICATED"]],
  [404, [NOT_FOUND_CLOSE, "NOT_FOUND"]],
]);

/** A refusal as its asker can read it: a 401 or 404 becomes a WebSocket that closes with its code where it can be nothing else. */
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

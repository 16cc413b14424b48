/**
 * Access for pages of other origins. Only origins that the application lists have access.
 *
 * CORS-1  Without `cors`, answers have no CORS header. With it, pages of listed origins may read answers, including
 *         errors. Cookies are never allowed.
 * CORS-2  A preflight is answered before `authorize`. The answer is the same for every path, so it reveals no data.
 *         Pages of listed origins may send any header, because clients of other protocols have their own headers.
 * CORS-3  A WebSocket is accepted only from pages of the server's own origin and of listed origins, because browsers
 *         send no preflight for it.
 */
import type { MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import { invalid } from "../../shared/errors.ts";
import { problem } from "../base/problem.ts";
import { isUpgrade } from "./bearer.ts";

export interface CorsOptions {
  /** Origins of pages that may use the API, such as `https://app.example.com`. `*` is refused. */
  origins: readonly string[];
}

const MAX_AGE_SECONDS = 600;

/** Answers preflights, and adds CORS headers to answers for listed origins. Throws `INVALID_INPUT` for an invalid origin. */
export function allowOrigins({ origins }: CorsOptions): MiddlewareHandler {
  for (const origin of origins) checkOrigin(origin);
  const mark = cors({
    origin: [...origins],
    allowMethods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
    exposeHeaders: [
      "Location",
      "Mcp-Session-Id",
      "Retry-After",
      "X-Dramatis-Conversation",
      "X-Dramatis-Turn",
      "X-Should-Retry",
    ],
    maxAge: MAX_AGE_SECONDS,
  });
  return async (context, next) => {
    const isPreflight = context.req.header("access-control-request-method") !== undefined;
    // An upgrade has no CORS headers, and an OPTIONS without a requested method is no preflight.
    if (isUpgrade(context.req.raw) || (context.req.method === "OPTIONS" && !isPreflight)) return next();
    return mark(context, next);
  };
}

/** Accepts WebSocket upgrades only from pages of the server's own origin and of listed origins. */
export function guardUpgrades({ origins }: CorsOptions): MiddlewareHandler {
  return async ({ req }, next) => {
    const origin = req.header("origin");
    if (!isUpgrade(req.raw) || origin === undefined || origins.includes(origin)) return next();
    if (origin === ownOrigin(req.raw)) return next();
    return problem("FORBIDDEN", "Pages of this origin may not connect. Add the origin to `cors.origins`.");
  };
}

function ownOrigin(request: Request): string {
  const url = new URL(request.url);
  return `${url.protocol}//${request.headers.get("host") ?? url.host}`;
}

function checkOrigin(origin: string): void {
  if (URL.canParse(origin) && new URL(origin).origin === origin) return;
  throw invalid(`"${origin}" is not an origin. Write it as "https://app.example.com": no path, no "*".`);
}

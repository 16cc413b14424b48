/**
 * Pages of other origins: none may enter unless the application names its origin.
 *
 * CORS-1  Without `cors` no answer carries a CORS header. With it, an origin that is listed, and no other, may read
 *         answers, errors too; cookies are never allowed.
 * CORS-2  A preflight is answered before `authorize`, for every path alike: it says nothing about what is there. Pages
 *         of listed origins may send any header: clients of other protocols have their own.
 * CORS-3  A WebSocket of a page is accepted from the server's own origin and from those that are listed: browsers do
 *         not ask before they connect.
 */
import type { MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import { DramatisError } from "../../shared/errors.ts";
import { problem } from "../base/problem.ts";
import { isUpgrade } from "./bearer.ts";

export interface CorsOptions {
  /** Origins such as `https://app.example.com`, whose pages may use the API. `*` is refused. */
  origins: readonly string[];
}

const MAX_AGE_SECONDS = 600;

/** Answers preflights and marks the answers to listed origins. Throws `INVALID_INPUT` for what is no origin. */
export function allowOrigins({ origins }: CorsOptions): MiddlewareHandler {
  for (const origin of origins) checkOrigin(origin);
  const mark = cors({
    origin: [...origins],
    allowMethods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
    exposeHeaders: ["Location", "Retry-After", "X-Dramatis-Conversation", "X-Should-Retry"],
    maxAge: MAX_AGE_SECONDS,
  });
  return async (context, next) => {
    const isPreflight = context.req.header("access-control-request-method") !== undefined;
    // An upgrade cannot be marked, and an OPTIONS that is no preflight is a request like any other.
    if (isUpgrade(context.req.raw) || (context.req.method === "OPTIONS" && !isPreflight)) return next();
    return mark(context, next);
  };
}

/** Refuses WebSocket upgrades by pages of origins that are neither the server's own nor listed. */
export function guardUpgrades({ origins }: CorsOptions): MiddlewareHandler {
  return async ({ req }, next) => {
    const origin = req.header("origin");
    if (!isUpgrade(req.raw) || origin === undefined || origins.includes(origin)) return next();
    if (origin === ownOrigin(req.raw)) return next();
    return problem("FORBIDDEN", "Pages of this origin may not connect. Name it in `cors.origins`.");
  };
}

function ownOrigin(request: Request): string {
  const url = new URL(request.url);
  return `${url.protocol}//${request.headers.get("host") ?? url.host}`;
}

function checkOrigin(origin: string): void {
  if (URL.canParse(origin) && new URL(origin).origin === origin) return;
  throw new DramatisError(
    "INVALID_INPUT",
    `"${origin}" is not an origin. Write it as "https://app.example.com": no path, no "*".`,
  );
}

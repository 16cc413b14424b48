/**
 * Authentication: the application's `authorize`, or the default here.
 *
 * AUTH-1  Every request except `GET /health` and the OAuth metadata of `/mcp` passes `authorize` before the API reveals any data.
 * AUTH-2  Without configuration all requests are refused. The local principal requires a runtime that was started for
 *         one machine (`DRAMATIS_LOCAL`), a loopback `Host`, and a page of that origin. So other sites in the user's
 *         browser and rebound DNS names cannot reach it. The server must pass the true `Host`: wrangler believes a
 *         client's `MF-Original-URL`.
 * AUTH-3  If any variable `AUTH_*` is set, valid or not, there is no local principal.
 */
import type { Principal } from "../../shared/principal.ts";
import { problem } from "../base/problem.ts";
import { isJwtConfigured, type JwtEnv, jwtAuthorize } from "./jwt.ts";

/**
 * Authenticates a request. Returns its principal, or the response that refuses the request.
 *
 * @example
 * const authorize: Authorize = async (request) => {
 *   const user = await findUser(bearerToken(request));
 *   if (user === null) return new Response(null, { status: 401 });
 *   return { subject: user.id, tenant: user.company, roles: ["member"] };
 * };
 */
export type Authorize<Env = unknown> = (request: Request, env: Env) => Promise<Principal | Response>;

/** The variable of the local principal. */
export interface LocalEnv {
  /** "1" under `npm start`. */
  DRAMATIS_LOCAL?: string;
}

const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i;

/** The default: tokens if they are configured, otherwise the local principal. */
export const defaultAuthorize: Authorize<JwtEnv & LocalEnv> = (request, env) =>
  isJwtConfigured(env) ? jwtAuthorize(request, env) : localAuthorize(request, env);

/** Returns an administrator of the tenant `local` for requests from this machine. */
export const localAuthorize: Authorize<LocalEnv> = async (request, env) => {
  if (env.DRAMATIS_LOCAL !== "1") {
    return problem(
      "UNAUTHENTICATED",
      "Authentication is not configured. Set AUTH_SECRET or AUTH_JWKS_URL, or, on your own machine, DRAMATIS_LOCAL=1 in .dev.vars.",
    );
  }
  const url = new URL(request.url);
  const host = request.headers.get("host") ?? url.host;
  if (!LOOPBACK.test(host)) {
    return problem(
      "UNAUTHENTICATED",
      "The local runtime answers on a loopback address only. Use http://localhost.",
    );
  }
  const origin = request.headers.get("origin");
  if (origin !== null && originOf(origin) !== originOf(`${url.protocol}//${host}`))
    return problem("UNAUTHENTICATED", "The local runtime answers pages of its own origin only.");
  return { subject: "local", tenant: "local", roles: ["admin"] };
};

function originOf(text: string): string | null {
  return URL.canParse(text) ? new URL(text).origin : null;
}

/**
 * Who may enter.
 *
 * AUTH-1  Every request but `GET /health` passes `authorize` before anything else is said about it.
 * AUTH-2  Without configuration nobody enters: the local principal exists only where the runtime was started for one
 *         machine (`DRAMATIS_LOCAL`), for a loopback `Host`, and for pages of that very origin. So neither another
 *         site in the user's browser nor a rebound DNS name reaches it, as far as the server tells the true `Host`
 *         (wrangler's believes a client's `MF-Original-URL`).
 * AUTH-3  As soon as anything of `AUTH_*` is set, right or wrong, there is no local principal any more.
 */
import type { Principal } from "../../shared/principal.ts";
import { problem } from "../base/problem.ts";
import { isJwtConfigured, type JwtEnv, jwtAuthorize } from "./jwt.ts";

/** Decides who is asking: a principal, or the response that refuses. */
export type Authorize<Env = unknown> = (request: Request, env: Env) => Promise<Principal | Response>;

/** What `localAuthorize` reads of the environment. */
export interface LocalEnv {
  /** "1" under `npm start`. */
  DRAMATIS_LOCAL?: string;
}

const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i;

/** The default: tokens where they are configured, else the local principal. */
export const defaultAuthorize: Authorize<JwtEnv & LocalEnv> = (request, env) =>
  isJwtConfigured(env) ? jwtAuthorize(request, env) : localAuthorize(request, env);

/** An administrator of the tenant `local`, on this machine only. */
export const localAuthorize: Authorize<LocalEnv> = async (request, env) => {
  if (env.DRAMATIS_LOCAL !== "1") {
    return problem(
      "UNAUTHENTICATED",
      "No way to authenticate is configured. Set AUTH_SECRET or AUTH_JWKS_URL, or, on your own machine, DRAMATIS_LOCAL=1 in .dev.vars.",
    );
  }
  const url = new URL(request.url);
  const host = request.headers.get("host") ?? url.host;
  if (!LOOPBACK.test(host)) {
    return problem("UNAUTHENTICATED", "The local runtime answers on a loopback address only.");
  }
  const origin = request.headers.get("origin");
  if (origin !== null && originOf(origin) !== originOf(`${url.protocol}//${host}`)) {
    return problem("UNAUTHENTICATED", "The local runtime answers pages of its own origin only.");
  }
  return { subject: "local", tenant: "local", roles: ["admin"] };
};

function originOf(text: string): string | null {
  return URL.canParse(text) ? new URL(text).origin : null;
}

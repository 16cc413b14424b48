/**
 * OAuth metadata of `/mcp` (RFC 9728). A client without a token learns from it which server issues tokens.
 *
 * MCP-10  The metadata need no token. They name the address of `/mcp` and the issuers, and nothing else. Without an issuer the answer is 404.
 */
import type { MiddlewareHandler } from "hono";
import type { HttpEnv, HttpRoutes } from "../base/context.ts";
import { json, noOperation } from "../base/respond.ts";

const WELL_KNOWN = "/.well-known/oauth-protected-resource";
const PATH = "/mcp";

type Issuers = (env: unknown) => readonly string[];

/** Adds the metadata, and their address to each 401 of `/mcp`. Must come before `authorize`. */
export function addMetadata(app: HttpRoutes, issuers: Issuers): void {
  for (const path of [WELL_KNOWN, `${WELL_KNOWN}${PATH}`])
    app.get(path, (context) => {
      const servers = issuers(context.env);
      if (servers.length === 0) return noOperation(context);
      return json({
        resource: `${originOf(context.req.url)}${PATH}`,
        authorization_servers: servers,
        bearer_methods_supported: ["header"],
      });
    });
  app.use(PATH, namesMetadata(issuers));
}

function namesMetadata(issuers: Issuers): MiddlewareHandler<HttpEnv> {
  return async (context, next) => {
    await next();
    const { res: response } = context;
    if (response.status !== 401 || issuers(context.env).length === 0) return;
    const headers = new Headers(response.headers);
    const challenge = headers.get("www-authenticate") ?? "Bearer";
    const address = `${originOf(context.req.url)}${WELL_KNOWN}${PATH}`;
    const separator = challenge.includes(" ") ? "," : "";
    headers.set("www-authenticate", `${challenge}${separator} resource_metadata="${address}"`);
    context.res = undefined;
    context.res = new Response(response.body, { status: 401, headers });
  };
}

const originOf = (url: string) => new URL(url).origin;

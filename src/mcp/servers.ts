/**
 * The MCP servers in the configuration of an application.
 *
 * MCPCONF-1  A secret is the name of a variable of the Worker. Its value goes to the server, or to the issuer of its tokens, and nowhere else.
 */
import { z } from "zod";
import { mcpServerIdSchema } from "../library/definitions/mcp-reference.ts";
import { MAX_TIMEOUT_MS } from "../library/tools/tool-schema.ts";
import { TOOL_EFFECTS } from "../protocol/definition-parts.ts";
import { unavailable } from "../shared/errors.ts";
import { serverAddressSchema } from "../shared/server-address.ts";
import { validate } from "../shared/validation.ts";

const secret = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/, "Must be the name of a variable.");
const serverSchema = z.strictObject({
  /** The address of the server: streamable HTTP. */
  url: serverAddressSchema,
  /** Headers of each request. `{secret}` is the value of a variable of the Worker, after `prefix`. */
  headers: z
    .record(
      z.string().regex(/^[A-Za-z0-9-]{1,100}$/, "Must be the name of a header."),
      z.union(
        [z.string(), z.strictObject({ secret, prefix: z.string().exactOptional() })],
        "Must be a text or {secret, prefix?}.",
      ),
    )
    .exactOptional(),
  /** Tokens by the grant `client_credentials`. `issuer` is the only server that gets the secret. */
  oauth: z
    .strictObject({
      issuer: serverAddressSchema,
      clientId: z.string().min(1),
      clientSecret: z.strictObject({ secret }),
      scope: z.string().exactOptional(),
    })
    .exactOptional(),
  /** The names of the tools that agents may use. Default: all. */
  allow: z.array(z.string().min(1)).min(1).max(256).exactOptional(),
  /** The least strict effect of its tools, whatever their hints say. Default: `pure`, so the hints count. */
  effect: z.enum(TOOL_EFFECTS).exactOptional(),
  /** Time limit of a call, in milliseconds. Default: 60 000. */
  timeoutMs: z.int().min(1).max(MAX_TIMEOUT_MS).exactOptional(),
});

export type McpServerOptions = z.infer<typeof serverSchema>;

export type McpServers = ReadonlyMap<string, McpServerOptions>;

/** Returns the checked servers. Throws `INVALID_INPUT`. */
export function mcpServersOf(given: Readonly<Record<string, McpServerOptions>> = {}): McpServers {
  const checked = validate(z.record(mcpServerIdSchema, serverSchema), given, "/mcpServers", "The option");
  return new Map(Object.entries(checked));
}

export interface Credentials {
  headers: Record<string, string>;
  clientSecret?: string;
  /** All values that must not be shown. A connection adds its access tokens. */
  secrets: string[];
}

/** Returns the values of a server's secrets. Throws `UNAVAILABLE` if a variable is not set. */
export function credentialsOf(
  id: string,
  { headers = {}, oauth }: McpServerOptions,
  variable: (name: string) => unknown,
): Credentials {
  const secrets: string[] = [];
  const secretOf = (name: string): string => {
    const value = variable(name);
    if (typeof value !== "string" || value === "")
      throw unavailable(`The MCP server "${id}" needs the variable \`${name}\`. Set it.`);
    secrets.push(value);
    return value;
  };
  const given = Object.entries(headers).map(([name, value]) => [
    name,
    typeof value === "string" ? value : `${value.prefix ?? ""}${secretOf(value.secret)}`,
  ]);
  const clientSecret = oauth && secretOf(oauth.clientSecret.secret);
  return {
    headers: Object.fromEntries(given),
    secrets,
    ...(clientSecret !== undefined && { clientSecret }),
  };
}

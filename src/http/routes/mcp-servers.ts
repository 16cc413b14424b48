/** `/api/mcp-servers`: the MCP servers that agents use, and the consent to their tools. For operators. */
import { z } from "zod";
import { mcpServerIdSchema } from "../../library/definitions/mcp-reference.ts";
import { requireOperator } from "../../protocol/mailbox-api.ts";
import { mcpConsent, mcpServerView } from "../../protocol/mcp-servers.ts";
import { json } from "../base/respond.ts";
import { ok } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";

const PATH = "/api/mcp-servers";

export const mcpServerRoutes: readonly Route[] = [
  route({
    id: "listMcpServers",
    method: "get",
    path: PATH,
    tag: "libraries",
    summary: "List the MCP servers that agents use",
    description:
      "With their tools as your tenant has accepted them. For operators and administrators. A list that is older than five minutes is read again from its server.",
    answers: ok("The servers.", z.strictObject({ servers: z.array(mcpServerView) })),
    errors: ["FORBIDDEN", "UNAVAILABLE"],
    permit: ({ principal }) => requireOperator(principal),
    handle: async (_, { principal, mcpServers }) =>
      json({ servers: await mcpServers().views(principal.tenant) }),
  }),
  route({
    id: "acceptMcpTools",
    method: "post",
    path: `${PATH}/:server/consent`,
    tag: "libraries",
    summary: "Accept new or changed tools of an MCP server",
    description:
      "For operators and administrators. Names the hashes of the `offered` descriptions that you have read. Answers `CONFLICT` if a description has changed since.",
    params: z.object({ server: mcpServerIdSchema.meta({ example: "github" }) }),
    body: mcpConsent,
    answers: ok("The server.", mcpServerView),
    errors: ["FORBIDDEN", "CONFLICT", "UNAVAILABLE"],
    permit: ({ principal }) => requireOperator(principal),
    handle: async ({ params: { server }, body }, { principal, mcpServers }) =>
      json(await mcpServers().consent(principal, server, body)),
  }),
];

/** Bodies and views of the MCP servers that agents use. */
import { z } from "zod";
import { TOOL_EFFECTS } from "./definition-parts.ts";
import { time } from "./scalars.ts";

const MAX_CONSENTS = 256;

const hash = z.string().min(1).max(100).describe("Hash of a description: its name, text, schemas and hints.");
const id = z
  .string()
  .min(1)
  .max(64)
  .meta({ description: "The tool's name in references and after `mcp__server__`.", example: "search" });

export const mcpConsent = z
  .strictObject({
    tools: z
      .array(z.strictObject({ id, hash }))
      .min(1)
      .max(MAX_CONSENTS)
      .describe("The `offered` descriptions that you accept."),
  })
  .meta({ example: { tools: [{ id: "search", hash: "9f86d081884c7d65" }] } });

export type McpConsent = z.infer<typeof mcpConsent>;

const described = z.strictObject({
  hash,
  description: z.string(),
  inputSchema: z.record(z.string(), z.json()),
  effect: z.enum(TOOL_EFFECTS),
});

const state = z
  .enum(["accepted", "changed", "new", "missing", "invalid"])
  .describe(
    "Agents use `accepted` tools. `changed` and `new` wait for consent. `missing` has left the server's list. `invalid` has a `problem`.",
  );

export type McpToolState = z.infer<typeof state>;

const toolView = z.strictObject({
  id,
  name: z.string().describe("The name on the server."),
  modelName: z.string().meta({ description: "The name that models call.", example: "mcp__github__search" }),
  allowed: z.boolean().describe("The application allows the tool."),
  state,
  version: z.int().describe("Counts the accepted descriptions."),
  acceptedBy: z.string().exactOptional(),
  accepted: described.exactOptional(),
  offered: described.exactOptional().describe("The description that waits for consent."),
  problem: z.string().exactOptional(),
});

export const mcpServerView = z
  .strictObject({
    id: z.string(),
    url: z.string(),
    listedAt: time.exactOptional().describe("The time of the newest list. Absent: never."),
    problem: z.string().exactOptional().describe("Why the newest list could not be read."),
    tools: z.array(toolView),
  })
  .meta({ id: "McpServer", description: "An MCP server, and its tools as the tenant knows them." });

export type McpServerView = z.infer<typeof mcpServerView>;

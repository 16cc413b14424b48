/**
 * The tools that an MCP server describes. Pure.
 *
 * MCPTOOL-1  The model knows a tool as `mcp__server__tool`. A character that providers do not accept becomes `_`. A changed or shortened name
 *            ends with a hash of the original, so names stay different.
 * MCPTOOL-2  `readOnlyHint` means `pure`, `idempotentHint` means `idempotent`. Without them a tool is `once`. The configuration may demand a
 *            stricter effect.
 * MCPTOOL-3  A description with a broken input schema, or that is too large, is kept out with the reason. Other tools of the list stay.
 * MCPTOOL-5  So is a description that asks for a header (`x-mcp-header`) in a way that the protocol forbids.
 * MCPTOOL-4  The hash of a description covers all that the model and the runtime use: name, description, input schema and hints. The output
 *            schema is dropped, because a check with the patterns of a server could block the isolate.
 * MCPTOOL-6  A description has no secret of the configuration, even if the server sends it back.
 */
import { z } from "zod";
import { strictest } from "../library/definitions/effects.ts";
import { inputSchemaIssues } from "../library/definitions/input-schema.ts";
import { modelName } from "../library/definitions/mcp-reference.ts";
import type { ToolEffect } from "../protocol/definition-parts.ts";
import { DEFINITION_ID } from "../shared/identifiers.ts";
import {
  canonicalJson,
  isJson,
  isJsonObject,
  isUnicode,
  type Json,
  type JsonObject,
} from "../shared/json.ts";
import { Patterns } from "../shared/json-schema/pattern.ts";
import { withoutValues } from "../shared/redact.ts";
import { sha256Hex } from "../shared/sha256.ts";
import { cut, fingerprint } from "../shared/text.ts";
import { utf8Length } from "../shared/utf8.ts";
import { inputIssues, issuesText } from "../shared/validation.ts";

const MAX_TOOLS = 256;
/** Bytes of one description as JSON, and of all descriptions of a server. */
const MAX_TOOL_BYTES = 64 * 1024;
const MAX_LIST_BYTES = 768 * 1024;
/** The limit of providers. */
const MAX_NAME = 64;
const MAX_SERVER_NAME = 128;
const MAX_PROBLEM = 500;
/** Steps of compiling the patterns of a tool, as of a posted tool. */
const MAX_COMPILE_STEPS = 100_000;

const object = z.record(z.string(), z.json());
const hint = z.boolean().optional();

/** The parts of a description that the model and the runtime use. Other parts are dropped. */
const descriptorSchema = z
  .object({
    name: z.string().min(1).max(MAX_SERVER_NAME),
    description: z.string().max(10_000).default(""),
    inputSchema: object,
    annotations: z.object({ readOnlyHint: hint, idempotentHint: hint }).default({}),
  })
  .transform(({ annotations: { readOnlyHint, idempotentHint }, ...tool }): McpDescriptor => {
    const effect = readOnlyHint === true ? "pure" : idempotentHint === true ? "idempotent" : "once";
    return { ...tool, effect };
  });

export interface McpDescriptor {
  name: string;
  description: string;
  inputSchema: JsonObject;
  /** The effect that the hints promise. */
  effect: ToolEffect;
}

/** A tool of a list: its description, or the reason why it cannot be used. */
export type ListedTool = { id: string; name: string } & (
  | { descriptor: McpDescriptor; hash: string; problem?: undefined }
  | { problem: string }
);

/** Returns the id of a tool: its name, as far as providers accept it (MCPTOOL-1). */
export function toolId(server: string, name: string): string {
  const room = MAX_NAME - modelName(server, "").length;
  if (DEFINITION_ID.test(name) && name.length <= room) return name;
  const plain = name.replace(/[^A-Za-z0-9_-]/g, "_").replace(/^[_-]+/, "") || "tool";
  return `${plain.slice(0, room - 9)}_${fingerprint(name)}`;
}

/** Returns the tools of a server's list (MCPTOOL-3, MCPTOOL-6). `allow` are the names that the application wants: they have room first. */
export async function readTools(
  server: string,
  tools: readonly unknown[],
  allow: readonly string[] = [],
  secrets: readonly string[] = [],
): Promise<ListedTool[]> {
  const names = tools.map((tool) => {
    const { name } = Object(tool);
    return typeof name === "string" ? withoutValues(name, secrets) : "";
  });
  const isWanted = (index: number) => Number(!allow.includes(names[index] ?? ""));
  const order = [...tools.keys()].sort((one, other) => isWanted(one) - isWanted(other));
  const listed = new Map<string, ListedTool>();
  let bytes = 0;
  for (const index of order.slice(0, MAX_TOOLS)) {
    const name = cut(names[index] ?? "", MAX_SERVER_NAME);
    const id = toolId(server, name);
    const read = readTool(tools[index], secrets);
    if (listed.has(id)) continue;
    if ("problem" in read) {
      listed.set(id, { id, name, problem: cut(read.problem, MAX_PROBLEM) });
      continue;
    }
    const { descriptor } = read;
    bytes += read.bytes;
    if (bytes > MAX_LIST_BYTES)
      listed.set(id, { id, name, problem: "The list of the server is too large. Allow fewer tools." });
    else listed.set(id, { id, name, descriptor, hash: await hashOf(descriptor) });
  }
  return [...listed.values()];
}

function readTool(
  tool: unknown,
  secrets: readonly string[],
): { descriptor: McpDescriptor; bytes: number } | { problem: string } {
  if (!isJson(tool) || !isUnicode(tool)) return { problem: "Its description is not valid JSON." };
  const bytes = utf8Length(JSON.stringify(tool));
  if (bytes > MAX_TOOL_BYTES)
    return { problem: `Its description has ${bytes} bytes. The maximum is ${MAX_TOOL_BYTES}.` };
  const parsed = descriptorSchema.safeParse(withoutValues(tool, secrets));
  const issues = parsed.success
    ? inputSchemaIssues(parsed.data.inputSchema, "/inputSchema", new Patterns(MAX_COMPILE_STEPS))
    : inputIssues(parsed.error);
  if (!parsed.success || issues.length > 0)
    return { problem: `Its description is not valid: ${issuesText(issues)}` };
  if (hasBadHeaders(parsed.data.inputSchema))
    return { problem: "Its input schema has an `x-mcp-header` that the protocol forbids." };
  return { descriptor: parsed.data, bytes };
}

const HEADER = "x-mcp-header";
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/;
const HEADER_TYPES: readonly unknown[] = ["string", "integer", "boolean"];

/** Reports whether a schema asks for headers elsewhere than in plain properties, or twice for one header (MCPTOOL-5). */
function hasBadHeaders(schema: JsonObject): boolean {
  const names: string[] = [];
  let isBad = Object.hasOwn(schema, HEADER);
  const visit = (node: Json, isProperty: boolean): void => {
    if (Array.isArray(node)) for (const item of node) visit(item, false);
    if (!isJsonObject(node)) return;
    if (Object.hasOwn(node, HEADER)) {
      const name = String(node[HEADER]);
      isBad ||= !isProperty || !TOKEN.test(name) || !HEADER_TYPES.includes(node.type);
      names.push(name.toLowerCase());
    }
    for (const [keyword, member] of Object.entries(node)) {
      const isProperties = keyword === "properties" && isJsonObject(member);
      if (isProperties) for (const property of Object.values(member)) visit(property, isProperty);
      else visit(member, false);
    }
  };
  visit(schema, true);
  return isBad || new Set(names).size < names.length;
}

function hashOf(descriptor: McpDescriptor): Promise<string> {
  // SAFETY: a description is plain JSON without undefined members.
  return sha256Hex(canonicalJson(descriptor as unknown as JsonObject));
}

/** Returns the effect of a call (MCPTOOL-2). */
export function effectOf({ effect }: McpDescriptor, least: ToolEffect = "pure"): ToolEffect {
  return strictest(effect, least);
}

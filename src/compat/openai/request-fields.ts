/**
 * Fields that the requests of both OpenAI protocols have: their schemas, and their conversion to options of a turn.
 *
 * OAI-11  Every field of the API is honoured, refused by its name, or ignored. Only fields that do not change the meaning of a request are
 *         ignored. The header `x-dramatis-ignored` of the answer names the ignored fields of the request.
 * OAI-12  The limit of a request's output reaches the provider, unless the limit of the agent's model profile is lower.
 * OAI-14  Tools that are not functions are left out beside functions, and named like an ignored field. Without a function they are refused.
 */
import { z } from "zod";
import type { OutputSpec, ToolSpec } from "../../model/context.ts";
import type { StartTurn } from "../../protocol/requests.ts";
import { defined } from "../../shared/defined.ts";
import type { JsonObject } from "../../shared/json.ts";
import { invalidInput } from "./input.ts";

/** A field that the agent's model profile decides, or that has no meaning here. */
export const IGNORED = z.unknown().optional().describe("Accepted, without effect.");

/** The most tokens of a reply. */
export const OUTPUT_TOKENS = z.int().min(1).nullish().describe("The most tokens of each reply of the model.");

/** Returns the names of the fields of a request that are ignored (OAI-11). */
export function ignoredFields({ shape }: { shape: z.core.$ZodShape }, body: object): string[] {
  return Object.entries(body).flatMap(([name, value]) => {
    if (value == null) return [];
    if (shape[name] === IGNORED) return [name];
    if (name === "tools" && Array.isArray(value))
      return value.flatMap((tool, index) => (isFunction(tool) ? [] : [`tools[${index}]`]));
    return name === "text" && typeof value === "object" && value.verbosity != null ? ["text.verbosity"] : [];
  });
}

export function only<Value extends boolean | number>(value: Value) {
  return z
    .literal(value, `Must be ${value} or absent: other values are not supported.`)
    .nullish()
    .describe(`Only \`${value}\` is supported.`);
}

export const REFUSED = z.null("Is not supported.").optional().describe("Not supported.");

export const toolName = z
  .string()
  .regex(/^[a-zA-Z0-9_-]{1,64}$/, "Must be 1 to 64 letters, digits, underscores and hyphens.");

/** Types of tools that a provider runs, or that have no JSON arguments. Newer types are refused by their name. */
const OTHER_TOOLS = [
  ...["apply_patch", "code_interpreter", "computer", "computer_use_preview", "custom", "file_search"],
  ...["image_generation", "local_shell", "mcp", "namespace", "programmatic_tool_calling", "shell"],
  ...["tool_search", "web_search", "web_search_2025_08_26", "web_search_preview"],
  "web_search_preview_2025_03_11",
] as const;
const ONLY_FUNCTIONS = "Only functions are supported: the client runs them.";

export function isFunction<Tool extends { type?: unknown }>(
  tool: Tool,
): tool is Extract<Tool, { type: "function" }> {
  return tool.type === "function";
}

/** The tools of a request: functions with the members of its protocol, and tools that are left out (OAI-14). */
export function clientTools<Shape extends z.ZodRawShape>(shape: Shape) {
  const called = z.object({ type: z.literal("function"), ...shape });
  const other = z.object({ type: z.enum(OTHER_TOOLS) }).describe("Left out.");
  return z
    .array(z.discriminatedUnion("type", [called, other], ONLY_FUNCTIONS))
    .refine((tools: readonly object[]) => tools.length === 0 || tools.some(isFunction), {
      path: [0, "type"],
      message: ONLY_FUNCTIONS,
    })
    .nullish();
}

export const jsonSchema = z.record(z.string(), z.unknown()).describe("A JSON Schema.");

export const agentModel = z
  .string()
  .min(1)
  .max(200)
  .meta({ description: "The id of an agent.", example: "assistant" });

/** The fields of both protocols with the same meaning. */
export const COMMON_FIELDS = {
  stream: z.boolean().nullish(),
  parallel_tool_calls: z
    .boolean()
    .nullish()
    .describe("`false`: each reply of the model has at most one call."),
  top_logprobs: only(0),
  moderation: REFUSED,
  temperature: IGNORED,
  top_p: IGNORED,
  service_tier: IGNORED,
  store: IGNORED,
  metadata: IGNORED,
  user: IGNORED,
  safety_identifier: IGNORED,
  prompt_cache_key: IGNORED,
  prompt_cache_retention: IGNORED,
  prompt_cache_options: IGNORED,
  client_metadata: IGNORED,
};

export type TurnOptions = Pick<
  StartTurn,
  "tools" | "toolChoice" | "output" | "maxOutputTokens" | "singleCalls"
>;

interface FunctionFields {
  name: string;
  description?: string | null | undefined;
  parameters?: Record<string, unknown> | null | undefined;
}

interface OptionFields {
  tools: readonly FunctionFields[] | null | undefined;
  choice: "auto" | "none" | "required" | { name: string } | null | undefined;
  output: OutputSpec | undefined;
  maxOutputTokens: number | null | undefined;
  parallel: boolean | null | undefined;
}

export function turnOptions({ tools, choice, output, maxOutputTokens, parallel }: OptionFields): TurnOptions {
  return defined({
    tools: tools == null || tools.length === 0 ? undefined : tools.map(toolSpec),
    toolChoice: typeof choice === "object" && choice !== null ? { name: choice.name } : (choice ?? undefined),
    output,
    maxOutputTokens: maxOutputTokens ?? undefined,
    singleCalls: parallel === false ? (true as const) : undefined,
  });
}

function toolSpec({ name, description, parameters }: FunctionFields): ToolSpec {
  // SAFETY: the body was parsed from JSON.
  const schema = (parameters ?? {}) as JsonObject;
  return { name, description: description ?? "", inputSchema: { type: "object", properties: {}, ...schema } };
}

/** Returns the form of a structured answer. Throws `INVALID_INPUT`, at the JSON pointer `path`, without a schema. */
export function outputSpec(
  name: string,
  schema: Record<string, unknown> | undefined,
  path: string,
): OutputSpec {
  if (schema === undefined) throw invalidInput(path, "Is required.");
  // SAFETY: as above.
  return { name, schema: schema as JsonObject };
}

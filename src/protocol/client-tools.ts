/** Tools that a client runs itself: how it offers them with a turn, and how it reports what became of a call. */
import { z } from "zod";
import type { ModelContext, ToolSpec } from "../model/context.ts";
import { isJson, type Json, type JsonObject } from "../shared/json.ts";
import { utf8Length } from "../shared/utf8.ts";
import { TOOL_ERROR_CODES, type ToolErrorCode } from "./tool-result.ts";

/** Tools that one turn may bring. */
const MAX_CLIENT_TOOLS = 64;
/** Bytes of JSON that they may have together. */
const MAX_CLIENT_TOOLS_BYTES = 256 * 1024;
/** Results that are submitted at once. */
const MAX_SUBMISSIONS = 64;

/** Which tools a model may or must use: any, none, at least one, or the one of this name. */
export type ToolChoice = ModelContext["toolChoice"];

/** What became of a call: exactly one of the two. */
export interface ToolOutcome {
  /** What the model is told. */
  result?: Json;
  error?: ClientToolError;
}

/** Why a call failed, as the model is told. */
export interface ClientToolError {
  message: string;
  /** `EXECUTION_FAILED` when absent. */
  code?: ToolErrorCode;
  /** Whether the model may try the same again; `false` when absent. */
  retriable?: boolean;
}

/** What became of the call with this id. */
export interface ToolSubmission extends ToolOutcome {
  operationId: string;
}

const name = z
  .string()
  .regex(/^[a-zA-Z0-9_-]{1,64}$/, "A tool's name is 1 to 64 letters, digits, underscores and hyphens.");

/** JSON Schema of an object, nested at most 64 deep. */
// SAFETY: `isJson` says so.
const inputSchema = z
  .looseObject({ type: z.literal("object", "The schema must describe an object.") })
  .refine(isJson, "Must be JSON, nested at most 64 deep.") as z.ZodType<JsonObject>;

const clientTool: z.ZodType<ToolSpec> = z.strictObject({
  name,
  description: z.string().max(10_000),
  inputSchema,
});

/** The tools that a client brings with a turn: distinct names, and not too much of everything. */
export const clientToolsSchema = z
  .array(clientTool)
  .max(MAX_CLIENT_TOOLS)
  .superRefine((tools, context) => {
    tools.forEach((tool, index) => {
      if (tools.findIndex((other) => other.name === tool.name) === index) return;
      context.addIssue({ code: "custom", path: [index, "name"], message: "Another tool has this name." });
    });
    if (utf8Length(JSON.stringify(tools)) <= MAX_CLIENT_TOOLS_BYTES) return;
    const message = `The tools of a turn may have ${MAX_CLIENT_TOOLS_BYTES} bytes of JSON together.`;
    context.addIssue({ code: "custom", message });
  });

/** Which tools the first call of a turn's model may or must use. */
export const toolChoiceSchema: z.ZodType<ToolChoice> = z.union([
  z.enum(["auto", "none", "required"]),
  z.strictObject({ name }),
]);

export const outcomeFields = {
  result: z.unknown().refine(isJson, "Must be JSON, nested at most 64 deep.").exactOptional(),
  error: z
    .strictObject({
      message: z.string().min(1).max(10_000),
      code: z.enum(TOOL_ERROR_CODES).exactOptional(),
      retriable: z.boolean().exactOptional(),
    })
    .exactOptional(),
};

/** Whether it says exactly one of the two. */
export function isOutcome(value: { result?: unknown; error?: unknown }): boolean {
  return Object.hasOwn(value, "result") !== Object.hasOwn(value, "error");
}

export const ONE_OUTCOME = "Give `result` or `error`, one of them.";

/** Results that are submitted together. */
export const submissionsSchema = z
  .array(
    z
      .strictObject({ operationId: z.string().min(1).max(200), ...outcomeFields })
      .refine(isOutcome, ONE_OUTCOME),
  )
  .min(1)
  .max(MAX_SUBMISSIONS);

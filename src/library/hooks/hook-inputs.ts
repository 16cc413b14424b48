/**
 * The inputs of hooks and of consolidations. Each input has one schema. Pure.
 *
 * HOOKIN-1  The input of a hook and the check of its workflow use the same schema. A member that is missing in the schema or in the input is a
 *           compile error.
 */
import { z } from "zod";
import type { HookName } from "../../protocol/definitions.ts";
import type { Json, JsonObject } from "../../shared/json.ts";

/** The ways in which a persona's memory uses a task or a workflow: its hooks and the consolidation. */
export type HookUse = HookName | "consolidation";

const text = z.string();
const list = z.array(z.unknown()).readonly();
const object = z.unknown().meta({ type: "object" });
const message = z.union([z.string(), list]);
const caller = z.object({
  type: text,
  userId: text.exactOptional(),
  agentId: text.exactOptional(),
  turnId: text.exactOptional(),
  runId: text.exactOptional(),
  node: text.exactOptional(),
});
const memory = { id: text, version: z.number(), type: text, content: text, time: text.exactOptional() };
const mark = z.literal(true).exactOptional();
const shownMemory = z.object({
  ...memory,
  key: text.exactOptional(),
  speaker: text.exactOptional(),
  tainted: mark,
  truncated: mark,
});
const activeTurn = z.object({
  turn_id: text,
  input: text,
  messages: z.array(text),
  pending_operations: z.array(z.object({ operation_id: text, name: text, input: text })),
});
const move = z.object({
  sequence: z.number(),
  text: text.exactOptional(),
  reasoning: text.exactOptional(),
  tool_call: z.object({ id: text, name: text, input: z.unknown() }).exactOptional(),
  tool_result: z
    .object({ success: z.boolean(), result: z.unknown().exactOptional(), error: object.exactOptional() })
    .exactOptional(),
});

export type ShownMemory = z.input<typeof shownMemory>;
/** Another active turn, as a context hook receives it. */
export type ActiveTurn = z.input<typeof activeTurn>;

const HOOK_INPUTS = {
  contextAssembly: z.object({
    conversation_id: text,
    turn_id: text,
    user_message: message,
    recent_turns: z.array(z.object({ messages: list })),
    summary: text.exactOptional(),
    model_profile: object,
    tool_definitions: list,
    system_instructions: z.array(text).readonly(),
    active_turns: z.array(activeTurn).readonly(),
    reply_to: z.object({ role: text, by: caller.exactOptional(), text }).exactOptional(),
    output: object.exactOptional(),
    tool_choice: z.unknown().exactOptional(),
    memories: z.array(shownMemory).readonly().exactOptional(),
  }),
  memoryExtraction: z.object({
    conversation_id: text,
    turn_id: text,
    caller,
    user_message: message,
    user_text: text,
    agent_message: text.nullable(),
    turn_transcript: z.array(move),
    completed_at: text,
    sent_at: text,
    time_zone: text.exactOptional(),
    memories: z
      .array(
        z.object({
          ...memory,
          key: text.exactOptional(),
          validFrom: text,
          readOnly: z.literal(true).exactOptional(),
        }),
      )
      .readonly()
      .exactOptional(),
  }),
  consolidation: z.object({
    memories: z.array(
      z.object({ ...memory, significance: z.number(), speaker: text.exactOptional(), validFrom: text }),
    ),
    type: text,
    subject: z.object({ userId: text.exactOptional(), conversationId: text.exactOptional() }),
  }),
} satisfies Record<HookUse, z.ZodType>;

type Members<Use extends HookUse> = z.input<(typeof HOOK_INPUTS)[Use]>;

/** All members of an input. An optional member may be `undefined`, but must be present in code. */
type Given<T> = { [Name in keyof T]-?: object extends Pick<T, Name> ? T[Name] | undefined : T[Name] };

/** Returns the input of a hook as plain JSON, without members that are `undefined` (HOOKIN-1). */
export function hookInput<Use extends HookUse>(_use: Use, members: Given<Members<Use>>): JsonObject {
  return JSON.parse(JSON.stringify(members));
}

/** Returns the JSON Schema of a hook's input with all members, including optional members. */
export function hookInputSchema(use: HookUse): JsonObject {
  return JSON.parse(JSON.stringify(z.toJSONSchema(HOOK_INPUTS[use], { io: "input", override: fullest })));
}

function fullest({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  typesOfUnion(jsonSchema);
  if (jsonSchema.properties) jsonSchema.required = Object.keys(jsonSchema.properties);
}

/** Writes a union of plain types as a list of types, because the schema checks expect this form. */
function typesOfUnion(jsonSchema: z.core.JSONSchema.BaseSchema): void {
  const types = jsonSchema.anyOf?.map((schema) => (typeof schema === "object" ? schema.type : undefined));
  if (types === undefined || !types.every((type) => typeof type === "string")) return;
  delete jsonSchema.anyOf;
  Object.assign(jsonSchema, { type: types satisfies Json });
}

/** The offline model's own request and stream formats: what a provider's wire format is to every other adapter. */

import { z } from "zod";
import type { ModelContext } from "../../../model/context.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject, type JsonObject } from "../../../shared/json.ts";
import { jsonOf } from "../common/request.ts";

const callSchema = z.object({ id: z.string(), name: z.string(), input: z.record(z.string(), z.unknown()) });

const messageSchema = z.object({
  role: z.enum(["system", "user", "assistant", "tool"]),
  text: z.string(),
  name: z.string().optional(),
  /** Tool calls of an assistant message. */
  calls: z.array(callSchema).optional(),
  /** The call that a tool message answers. */
  callId: z.string().optional(),
  /** A tool message that reports a failure. */
  failed: z.boolean().optional(),
});

const schemaObject = z.custom<JsonObject>(isJsonObject);

/** A request. Keys beyond these are ignored, as a server would. */
export const bodySchema = z.object({
  messages: z.array(messageSchema),
  tools: z.array(z.object({ name: z.string(), inputSchema: schemaObject.default({}) })).default([]),
  toolChoice: z.union([z.enum(["auto", "none", "required"]), z.object({ name: z.string() })]).default("auto"),
  /** The answer must be JSON of this schema. */
  output: z.object({ schema: schemaObject }).optional(),
  /** A wait after each chunk, in milliseconds. */
  pauseMs: z.number().min(0).max(1_000).default(0),
});

export type OfflineBody = z.infer<typeof bodySchema>;
export type OfflineMessage = z.infer<typeof messageSchema>;

const tokens = z.number().int().nonnegative();

/** One payload of a reply. */
export const chunkSchema = z.union([
  z.object({ id: z.string() }),
  z.object({ text: z.string() }),
  z.object({
    call: z.object({
      index: z.number().int().nonnegative(),
      id: z.string(),
      name: z.string(),
      input: z.string(),
    }),
  }),
  z.object({
    done: z.enum(["stop", "tool_calls"]),
    usage: z.object({ inputTokens: tokens, outputTokens: tokens }),
  }),
  z.object({ error: z.string() }),
]);

export type OfflineChunk = z.infer<typeof chunkSchema>;

export function buildBody(profile: ModelProfile, context: ModelContext): JsonObject {
  return {
    ...profile.parameters,
    model: profile.modelId,
    messages: [
      ...context.systemInstructions.map((text) => ({ role: "system", text })),
      ...context.messages.map(toOfflineMessage),
    ],
    tools: context.tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
    toolChoice: context.toolChoice,
    ...(context.output === undefined ? {} : { output: { ...context.output } }),
  };
}

export function toOfflineMessage(message: ContextMessage): JsonObject {
  const { role, content, name, toolCallId, toolCalls, metadata } = message;
  return {
    role,
    text: content,
    ...defined({ name }),
    ...(toolCalls === undefined || toolCalls.length === 0
      ? {}
      : {
          calls: toolCalls.map((call) => ({ id: call.id, name: call.name, input: jsonOf(call.arguments) })),
        }),
    ...defined({ callId: toolCallId }),
    ...(metadata?.isSuccess === false ? { failed: true } : {}),
  };
}

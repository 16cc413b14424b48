/** The offline model's wire format: its request, and the payloads of its reply. */
import { z } from "zod";
import { isJsonObject, type JsonObject } from "../../../shared/json.ts";

const messageSchema = z.object({
  role: z.enum(["system", "user", "assistant", "tool"]),
  text: z.string(),
  name: z.string().optional(),
  calls: z
    .array(z.object({ id: z.string(), name: z.string(), input: z.record(z.string(), z.unknown()) }))
    .optional(),
  /** The call that a tool message answers. */
  callId: z.string().optional(),
  /** Set on a tool message that reports a failure. */
  failed: z.boolean().optional(),
});

const schemaObject = z.custom<JsonObject>(isJsonObject);

/** A request. Other keys are ignored, as by a server. */
export const bodySchema = z.object({
  messages: z.array(messageSchema),
  tools: z
    .array(
      z.object({
        name: z.string(),
        description: z.string().default(""),
        inputSchema: schemaObject.default({}),
      }),
    )
    .default([]),
  toolChoice: z.union([z.enum(["auto", "none", "required"]), z.object({ name: z.string() })]).default("auto"),
  /** Demands an answer that is JSON of this schema. */
  output: z.object({ schema: schemaObject }).optional(),
  /** Wait after each chunk of text, in milliseconds. */
  pauseMs: z.number().min(0).max(1_000).default(0),
  /** The most words of a text. */
  maxOutputTokens: z.int().min(1).optional(),
});

export type OfflineBody = z.infer<typeof bodySchema>;
export type OfflineMessage = z.infer<typeof messageSchema>;

const count = z.number().int().nonnegative();

/** One payload of a reply. It has one of these members; the last payload has `done` and `usage`. */
export const chunkSchema = z
  .object({
    id: z.string(),
    text: z.string(),
    call: z.object({ index: count, id: z.string(), name: z.string(), input: z.string() }),
    done: z.enum(["stop", "tool_calls", "length"]),
    usage: z.object({ inputTokens: count, outputTokens: count }),
    error: z.string(),
  })
  .partial();

export type OfflineChunk = z.infer<typeof chunkSchema>;

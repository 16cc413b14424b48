/** The history that a new conversation continues: its messages, and the rule of their order. */
import { z } from "zod";
import type { ContextMessage } from "../model/messages.ts";
import { BLANK_RULE, isBlank } from "../shared/content.ts";
import { type Facts, isJson } from "../shared/json.ts";

const MAX_MESSAGES = 1_000;
/** Tool calls of one message. */
const MAX_CALLS = 128;

const label = z.string().min(1).max(200);
const shown = z.string().refine((text) => !isBlank(text), BLANK_RULE);
const call = z.strictObject({
  id: label,
  name: label,
  // SAFETY: `isJson` has checked it.
  arguments: z
    .record(z.string(), z.unknown())
    .refine(isJson, "Must be JSON, nested at most 64 deep.") as z.ZodType<Facts>,
});

const message = z.discriminatedUnion("role", [
  z.strictObject({ role: z.literal("system"), content: shown }),
  z.strictObject({ role: z.literal("user"), content: shown, name: label.exactOptional() }),
  z.strictObject({
    role: z.literal("assistant"),
    content: z.string(),
    name: label.exactOptional(),
    toolCalls: z.array(call).max(MAX_CALLS).exactOptional(),
  }),
  z.strictObject({
    role: z.literal("tool"),
    content: z.string(),
    toolCallId: label,
    name: label.exactOptional(),
    metadata: z.strictObject({ isSuccess: z.boolean() }).exactOptional(),
  }),
]);

type Message = z.output<typeof message>;

/** The schema of a history (SEED-2): at most 1 000 messages. Callers may have lists of `ContextMessage`. */
export const historySchema: z.ZodType<ContextMessage[]> = z
  .array(message)
  .max(MAX_MESSAGES)
  .superRefine((messages, context) => {
    for (const { path, message } of problemsOf(messages)) context.addIssue({ code: "custom", path, message });
  });

/** Finds messages that do not form a valid sequence. */
function problemsOf(messages: readonly Message[]): { path: PropertyKey[]; message: string }[] {
  const problems: { path: PropertyKey[]; message: string }[] = [];
  let waiting = new Map<string, PropertyKey[]>();
  const close = () => {
    for (const path of waiting.values()) problems.push({ path, message: "This call has no result." });
    waiting = new Map();
  };
  messages.forEach((message, index) => {
    if (message.role === "tool") {
      if (waiting.delete(message.toolCallId)) return;
      problems.push({
        path: [index, "toolCallId"],
        message: "No call before this message waits for this result.",
      });
      return;
    }
    close();
    if (message.role !== "assistant") return;
    const { content, toolCalls = [] } = message;
    if (toolCalls.length === 0 && isBlank(content)) {
      problems.push({
        path: [index, "content"],
        message: "Must not be blank, unless the message calls a tool.",
      });
    }
    toolCalls.forEach(({ id }, position) => {
      const path = [index, "toolCalls", position, "id"];
      if (waiting.has(id)) problems.push({ path, message: "Another call of this message has this id." });
      else waiting.set(id, path);
    });
  });
  close();
  return problems;
}

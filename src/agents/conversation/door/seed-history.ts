/**
 * A history that a new conversation continues: checked, and stored as events of its agent's session.
 *
 * SEED-1  The model sees a seeded history like the conversation's own turns, by the same rules of the window; the
 *         transcript does not show it. It is written in the transaction that creates the conversation.
 * SEED-2  Calls are directly followed by their results, one each; any other history is refused, and nothing is created.
 */
import { z } from "zod";
import { messageToEvent } from "../../../memory/session/events.ts";
import type { SessionEvent } from "../../../memory/session/types.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import type { Ids } from "../../../ports/ids.ts";
import { isBlank } from "../../../shared/content.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { checkJson, type Facts, isJson } from "../../../shared/json.ts";
import { utf8Length } from "../../../shared/utf8.ts";

const MAX_MESSAGES = 1_000;
/** Size of a history as JSON, in bytes. */
const MAX_BYTES = 1024 * 1024;
/** Tool calls of one message. */
const MAX_CALLS = 128;

const label = z.string().min(1).max(200);
const shown = z.string().refine((text) => !isBlank(text), "Must not be blank.");
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

export const historySchema = z
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
  messages.forEach((said, index) => {
    if (said.role === "tool") {
      if (waiting.delete(said.toolCallId)) return;
      problems.push({
        path: [index, "toolCallId"],
        message: "No call before this message waits for this result.",
      });
      return;
    }
    close();
    if (said.role !== "assistant") return;
    const { content, toolCalls = [] } = said;
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

/** Throws `INVALID_JSON`, `INVALID_INPUT` or `TOO_LARGE` for a history that is too deep, malformed or too long. */
export function checkHistory(history: unknown): void {
  if (history === undefined) return;
  checkJson(history, "The history");
  if (utf8Length(JSON.stringify(history)) <= MAX_BYTES) return;
  throw new DramatisError(
    "TOO_LARGE",
    `A history may have at most ${MAX_BYTES} bytes of JSON; leave out its beginning.`,
  );
}

/** Returns a history as events, numbered from 0. `userId` is the user who brings the history. */
export function seedEvents(
  messages: readonly ContextMessage[],
  { sessionId, userId, now, ids }: { sessionId: string; userId: string; now: number; ids: Ids },
): SessionEvent[] {
  const names = new Map<string, string>();
  return messages.map((said) => {
    for (const { id, name } of said.toolCalls ?? []) names.set(id, name);
    const called = said.role === "tool" ? names.get(said.toolCallId ?? "") : undefined;
    const named = called === undefined ? said : { name: called, ...said };
    const metadata = { ...said.metadata, origin: `client:${userId}` };
    return messageToEvent(sessionId, { ...named, metadata }, { id: ids.ulid(), createdAt: now });
  });
}

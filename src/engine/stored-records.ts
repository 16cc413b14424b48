/** Records on their way into a store and out of it: checked, and as the JSON text that every store keeps. Pure. */
import { z } from "zod";
import { DramatisError } from "../shared/errors.ts";
import { checkJson, isJson } from "../shared/json.ts";
import { jsonPointer, validate } from "../shared/validation.ts";
import type { ListOptions } from "./conversation-store.ts";
import type { ConversationMessage, ConversationRecord, ConversationTurn } from "./types.ts";

const id = z.string().min(1).max(200);
const time = z
  .string()
  .refine((text) => !Number.isNaN(Date.parse(text)), "Must be a time, such as 2026-01-31T12:00:00Z.");

const conversation = z.looseObject({ id, agent: z.string(), createdAt: time, updatedAt: time });
const message = z.looseObject({
  id,
  conversationId: id,
  role: z.enum(["system", "user", "assistant", "tool", "other"]),
  content: z.unknown().refine((content) => content !== undefined, "Is required."),
  createdAt: time,
});
const turn = z.looseObject({
  id,
  conversationId: id,
  agent: z.string(),
  inputMessages: z.array(message),
  outputMessages: z.array(message),
  providerCalls: z.array(z.looseObject({ id })),
  status: z.enum(["pending", "running", "succeeded", "failed", "cancelled"]),
  startedAt: time,
});

/** The text of a conversation. Throws `INVALID_INPUT` for what is none, or what JSON cannot say. */
export function conversationText(value: ConversationRecord): string {
  return textOf(conversation, value, "The conversation");
}

/** The text of a message of this conversation, and its time in milliseconds. Throws as above. */
export function messageText(
  conversationId: string,
  value: ConversationMessage,
): { text: string; at: number } {
  const text = textOf(message, value, "The message");
  if (value.conversationId !== conversationId) {
    const of = `The message "${value.id}" is of the conversation "${value.conversationId}"`;
    throw new DramatisError("INVALID_INPUT", `${of}: it cannot be appended to "${conversationId}".`);
  }
  return { text, at: Date.parse(value.createdAt) };
}

/** The text of a turn, and its time in milliseconds. Throws as above. */
export function turnText(value: ConversationTurn): { text: string; at: number } {
  return { text: textOf(turn, value, "The turn"), at: Date.parse(value.startedAt) };
}

/** Reads what one of these functions wrote. */
export function fromText<Stored extends ConversationRecord | ConversationMessage | ConversationTurn>(
  text: string,
): Stored {
  return JSON.parse(text);
}

/** The options, each written out. Throws `INVALID_INPUT`. */
export function completeListOptions({ limit, order = "asc" }: ListOptions = {}): Required<ListOptions> {
  if (limit !== undefined && (!Number.isInteger(limit) || limit < 0)) {
    throw new DramatisError("INVALID_INPUT", "`limit` must be a whole number, at least 0.");
  }
  if (order !== "asc" && order !== "desc") {
    throw new DramatisError("INVALID_INPUT", '`order` must be "asc" or "desc".');
  }
  return { limit: limit ?? Number.MAX_SAFE_INTEGER, order };
}

export function conversationNotFound(conversationId: string): DramatisError {
  return new DramatisError("NOT_FOUND", `There is no conversation "${conversationId}".`);
}

export function turnNotFound(conversationId: string, turnId: string): DramatisError {
  return new DramatisError("NOT_FOUND", `The conversation "${conversationId}" has no turn "${turnId}".`);
}

/** What is written under an id that is there already. */
export function taken(what: "conversation" | "message" | "turn", id: string): DramatisError {
  return new DramatisError("CONFLICT", `There is a ${what} "${id}" already: give a new one another id.`);
}

function textOf(schema: z.ZodType, value: object, name: string): string {
  validate(schema, value, "", name);
  const present = withoutUndefined(value, []);
  checkJson(present, name);
  if (!isJson(present)) {
    throw new DramatisError(
      "INVALID_INPUT",
      `${name} holds what JSON cannot say: use plain objects, lists, texts, finite numbers, booleans and null.`,
    );
  }
  return JSON.stringify(present);
}

/** How deep a record may nest; what is deeper may be circular. */
const MAX_DEPTH = 64;

/** A copy without the keys whose value is `undefined`, at every level. */
function withoutUndefined(value: unknown, path: readonly PropertyKey[]): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (path.length > MAX_DEPTH) {
    const errors = [{ path: jsonPointer(path.slice(0, 8)), message: "Nests too deep." }];
    throw new DramatisError("INVALID_INPUT", `A record nests deeper than ${MAX_DEPTH} levels.`, { errors });
  }
  if (Array.isArray(value)) return value.map((item, index) => withoutUndefined(item, [...path, index]));
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  const present = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(present.map(([key, member]) => [key, withoutUndefined(member, [...path, key])]));
}

/** Checks of records and of list options, and the JSON text of a record. Pure. */
import { z } from "zod";
import { conflict, type DramatisError, invalid, notFound } from "../shared/errors.ts";
import { checkJson, isJson } from "../shared/json.ts";
import { jsonPointer, validate } from "../shared/validation.ts";
import type { ListOptions } from "./conversation-store.ts";
import type { ConversationMessage, ConversationRecord, ConversationTurn } from "./records.ts";

/** Maximum depth of a record. A deeper value may be circular. */
const MAX_DEPTH = 64;

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

/** A message or a turn as JSON text, with the time that orders it. */
export interface StoredRecord {
  id: string;
  text: string;
  /** Milliseconds since the epoch. */
  at: number;
}

/** Returns the text of a conversation. Throws `INVALID_INPUT` if it is invalid. */
export function conversationText(value: ConversationRecord): string {
  return textOf(conversation, value, "The conversation");
}

/** Converts a message to its stored form. Throws `INVALID_INPUT` if it is invalid or of another conversation. */
export function messageRecord(conversationId: string, value: ConversationMessage): StoredRecord {
  const text = textOf(message, value, "The message");
  if (value.conversationId !== conversationId)
    throw invalid(
      `The message "${value.id}" belongs to the conversation "${value.conversationId}". It cannot be appended to "${conversationId}".`,
    );
  return { id: value.id, text, at: Date.parse(value.createdAt) };
}

/** Converts a turn to its stored form. Throws `INVALID_INPUT` if it is invalid. */
export function turnRecord(value: ConversationTurn): StoredRecord {
  return { id: value.id, text: textOf(turn, value, "The turn"), at: Date.parse(value.startedAt) };
}

/** Fills in the defaults of list options. Throws `INVALID_INPUT`. */
export function completeListOptions({ limit, order = "asc" }: ListOptions = {}): Required<ListOptions> {
  if (limit !== undefined && (!Number.isInteger(limit) || limit < 0))
    throw invalid("`limit` must be a whole number, at least 0.");
  if (order !== "asc" && order !== "desc") throw invalid('`order` must be "asc" or "desc".');
  return { limit: limit ?? Number.MAX_SAFE_INTEGER, order };
}

export function conversationNotFound(conversationId: string): DramatisError {
  return notFound(`There is no conversation "${conversationId}".`);
}

export function turnNotFound(conversationId: string, turnId: string): DramatisError {
  return notFound(`The conversation "${conversationId}" has no turn "${turnId}".`);
}

export function takenId(kind: "conversation" | "message" | "turn", id: string): DramatisError {
  return conflict(`A ${kind} with the id "${id}" exists. Use another id.`);
}

function textOf(schema: z.ZodType, value: object, name: string): string {
  validate(schema, value, "", name);
  const present = withoutUndefined(value, []);
  checkJson(present, name);
  if (!isJson(present))
    throw invalid(
      `${name} contains a value that JSON cannot represent. Use plain objects, lists, texts, finite numbers, booleans and null.`,
    );
  return JSON.stringify(present);
}

/** Returns a deep copy without keys that have the value `undefined`. */
function withoutUndefined(value: unknown, path: readonly PropertyKey[]): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (path.length > MAX_DEPTH) {
    const errors = [{ path: jsonPointer(path.slice(0, 8)), message: "Nests too deep." }];
    throw invalid(`A record nests deeper than ${MAX_DEPTH} levels.`, { errors });
  }
  if (Array.isArray(value)) return value.map((item, index) => withoutUndefined(item, [...path, index]));
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  const present = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(present.map(([key, member]) => [key, withoutUndefined(member, [...path, key])]));
}

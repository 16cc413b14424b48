/**
 * Creates ids for clients of the OpenAI protocols. Opaque to clients.
 *
 * OAI-1  An id resolves without a lookup: it contains the conversation, and either the operation, or the turn and the index of its answer.
 *        An id grants no rights: the conversation decides who may read it.
 */
import { decodeTime } from "ulid";
import { inJurisdiction, JURISDICTION_SUFFIX, jurisdictionOf } from "../../shared/location.ts";
import type { AnswerOptions } from "../answer.ts";

const ULID = "[0-9A-HJKMNP-TV-Z]{26}";
/** Ends the id of an answer that is read `finalOnly`. */
const FINAL_ONLY = "f";
const CALL_ID = new RegExp(`^call_(${ULID})(${ULID})(${JURISDICTION_SUFFIX})$`);
const RESPONSE_ID = new RegExp(
  `^resp_(${ULID})(${ULID})_([0-9]{1,4})(${FINAL_ONLY}?)(${JURISDICTION_SUFFIX})$`,
);
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** One answer of a turn, and the way to read it. */
export interface AnswerAddress extends AnswerOptions {
  conversationId: string;
  turnId: string;
}

interface CallAddress {
  conversationId: string;
  operationId: string;
}

const bare = (id: string) => id.slice(id.indexOf("_") + 1);

/** Adds the jurisdiction of a conversation, which is at the end of its id, to the end of another. */
const placed = (id: string, conversationId: string) => inJurisdiction(id, jurisdictionOf(conversationId));

/** Returns the characters that all ids of a conversation begin with. */
const stem = (conversationId: string) => bare(inJurisdiction(conversationId, undefined));

export function toolCallId(conversationId: string, operationId: string): string {
  return placed(`call_${stem(conversationId)}${bare(operationId)}`, conversationId);
}

/** Reads the id of a call. Returns `null` for ids of other origin. */
export function parseCallId(id: string): CallAddress | null {
  const [, conversation, operation, place = ""] = CALL_ID.exec(id) ?? [];
  if (conversation === undefined || operation === undefined) return null;
  return { conversationId: `conv_${conversation}${place}`, operationId: `op_${operation}` };
}

export function completionId(address: AnswerAddress): string {
  return `chatcmpl-${answerKey(address)}`;
}

export function responseId(address: AnswerAddress): string {
  return `resp_${answerKey(address)}`;
}

/** Reads the id of a response. Returns `null` for ids of other origin. */
export function parseResponseId(id: string): AnswerAddress | null {
  const [, conversation, turn, index, mark, place = ""] = RESPONSE_ID.exec(id) ?? [];
  if (conversation === undefined || turn === undefined) return null;
  return {
    conversationId: `conv_${conversation}${place}`,
    turnId: `turn_${turn}`,
    index: Number(index),
    finalOnly: mark === FINAL_ONLY,
  };
}

/** The id of a response's output item. */
export function itemId(kind: "msg" | "fc", address: AnswerAddress, itemIndex: number): string {
  return `${kind}_${answerKey(address)}_${itemIndex}`;
}

function answerKey({ conversationId, turnId, index, finalOnly }: AnswerAddress): string {
  return placed(
    `${stem(conversationId)}${bare(turnId)}_${index}${finalOnly ? FINAL_ONLY : ""}`,
    conversationId,
  );
}

/** Start of a turn, in seconds since the epoch. The turn's id contains the time. */
export function startedAt(turnId: string): number {
  return Math.floor(decodeTime(bare(turnId)) / 1000);
}

/** Derives the id of a conversation from a subject's idempotency key. Different keys and subjects have different ids. */
export async function conversationOfKey(
  protocol: "openai" | "mcp" | "agui" | "a2a",
  tenant: string,
  subject: string,
  key: string,
): Promise<string> {
  const text = new TextEncoder().encode(JSON.stringify([protocol, tenant, subject, key]));
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", text)).slice(0, 26);
  return `conv_${Array.from(bytes, (byte) => ALPHABET.charAt(byte % 32)).join("")}`;
}

/**
 * Ids that clients of the OpenAI protocols are given. Opaque to them; to us each says where it points.
 *
 * OAI-1  An id of ours resolves without a lookup: it holds the conversation, and the operation or the turn and the number
 *        of its answer. It entitles to nothing: the conversation decides who may see it.
 */

import type { AnswerOptions } from "../answer.ts";

const ULID = "[0-9A-HJKMNP-TV-Z]{26}";
/** Ends the id of an answer that is read `finalOnly`. */
const FINAL_ONLY = "f";
const CALL_ID = new RegExp(`^call_(${ULID})(${ULID})$`);
const RESPONSE_ID = new RegExp(`^resp_(${ULID})(${ULID})_([0-9]{1,4})(${FINAL_ONLY}?)$`);
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TIME_LENGTH = 10;

/** One answer of a turn, and how it is read. */
export interface AnswerAddress extends AnswerOptions {
  conversationId: string;
  turnId: string;
}

export interface CallAddress {
  conversationId: string;
  operationId: string;
}

const bare = (id: string) => id.slice(id.indexOf("_") + 1);

export function toolCallId(conversationId: string, operationId: string): string {
  return `call_${bare(conversationId)}${bare(operationId)}`;
}

/** Where a call's id points; `null` for one that is not ours. */
export function parseCallId(id: string): CallAddress | null {
  const [, conversation, operation] = CALL_ID.exec(id) ?? [];
  if (conversation === undefined || operation === undefined) return null;
  return { conversationId: `conv_${conversation}`, operationId: `op_${operation}` };
}

export function completionId(address: AnswerAddress): string {
  return `chatcmpl-${answerKey(address)}`;
}

export function responseId(address: AnswerAddress): string {
  return `resp_${answerKey(address)}`;
}

/** Where a response's id points; `null` for one that is not ours. */
export function parseResponseId(id: string): AnswerAddress | null {
  const [, conversation, turn, part, mark] = RESPONSE_ID.exec(id) ?? [];
  if (conversation === undefined || turn === undefined) return null;
  return {
    conversationId: `conv_${conversation}`,
    turnId: `turn_${turn}`,
    part: Number(part),
    finalOnly: mark === FINAL_ONLY,
  };
}

/** The id of a response's output item at `index`. */
export function itemId(kind: "msg" | "fc", address: AnswerAddress, index: number): string {
  return `${kind}_${answerKey(address)}_${index}`;
}

function answerKey({ conversationId, turnId, part, finalOnly }: AnswerAddress): string {
  return `${bare(conversationId)}${bare(turnId)}_${part}${finalOnly ? FINAL_ONLY : ""}`;
}

/** When a turn began, in seconds since the epoch: its id begins with the time. */
export function startedAt(turnId: string): number {
  let time = 0;
  for (const character of bare(turnId).slice(0, TIME_LENGTH)) time = time * 32 + ALPHABET.indexOf(character);
  return Math.floor(time / 1000);
}

/**
 * The conversation that a subject's idempotency key stands for: the same for the same three, and for nothing else. It is
 * shaped as every other.
 */
export async function conversationOfKey(tenant: string, subject: string, key: string): Promise<string> {
  const text = new TextEncoder().encode(JSON.stringify(["openai", tenant, subject, key]));
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", text)).slice(0, 26);
  return `conv_${Array.from(bytes, (byte) => ALPHABET.charAt(byte % 32)).join("")}`;
}

/**
 * The posts of a thread. Pure.
 *
 * CHANNEL-5  A text is shown at most once. In a channel that edits, a post first sends a placeholder, and then replaces it by the text. Both
 *            are repeated until they succeed: a second placeholder shows no text, and a repeated replacement has no effect. In other
 *            channels a post is repeated only if it surely failed. After a crash the result is unknown, so the post is not sent again.
 * CHANNEL-9  A post with a question of a server shows the question. It has buttons only if the answer has no values. The id of a button has
 *            the round of the question, so that an approval counts for this question only. A denial ends the call. A post names a workflow that waits for a person.
 */
import type { ChannelDelivery, ChannelText } from "../../../protocol/channels.ts";
import { type ElicitationView, isConfirmation } from "../../../protocol/elicitation.ts";
import type { ApprovalAnswer } from "../../../protocol/requests.ts";
import type { SubscribedFrame } from "../../../protocol/subscribers.ts";
import { backoffMs } from "../../../shared/backoff.ts";
import type { Json } from "../../../shared/json.ts";
import { shorten, wholeLength } from "../../../shared/text.ts";

/** Attempts of a post or of an input. With the pauses, they take about an hour. */
export const MAX_ATTEMPTS = 12;
/** The text of a message until its place is stored. */
export const PLACEHOLDER = "…";
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 600_000;
/** A platform may ask for at most this pause. */
const MAX_ASKED_MS = 3_600_000;
/** A request for approval with a longer input has no buttons. In UTF-16 units. */
const MAX_INPUT_LENGTH = 8_000;

export interface Post {
  seq: number;
  surface: Json;
  body: ChannelText;
  attempts: number;
  /** The reference of the placeholder or the preview that the post replaces. */
  replaces?: string;
}

export type AfterAttempt =
  | { type: "done" }
  | { type: "again"; pauseMs: number }
  /** `isSent` is `null` if it is unknown. */
  | { type: "given up"; isSent: false | null; reason: string };

/** Returns what follows a number of attempts. `isRepeatable`: a repetition shows no text twice (CHANNEL-5). */
export function afterAttempt(
  { attempts, isRepeatable }: { attempts: number; isRepeatable: boolean },
  result: ChannelDelivery,
): AfterAttempt {
  if (result.status === "delivered") return { type: "done" };
  const { code, message } = result.error;
  const reason = `${code}: ${message}`;
  const mayRepeat = result.status === "failed" ? result.retryable : isRepeatable;
  if (mayRepeat && attempts < MAX_ATTEMPTS) {
    const asked = result.status === "failed" ? (result.retryAfterMs ?? 0) : 0;
    return { type: "again", pauseMs: Math.max(Math.min(asked, MAX_ASKED_MS), pauseMs(attempts)) };
  }
  return { type: "given up", isSent: result.status === "failed" ? false : null, reason };
}

/** Returns the pause after failed attempts, in milliseconds. */
export function pauseMs(attempts: number): number {
  return backoffMs(attempts, FIRST_PAUSE_MS, MAX_PAUSE_MS);
}

/** The place of a frame. `server` is the address of the server, which has the console; absent if it is unknown. */
export interface FramePlace {
  conversationId: string;
  server?: string | undefined;
}

/** Returns the text that a frame posts; `null` without a text. `withInterim`: texts beside calls of tools are posted, too. */
export function textOf(
  frame: SubscribedFrame,
  withInterim: boolean,
  { conversationId, server }: FramePlace,
): ChannelText | null {
  const inConsole = (path = `/c/${conversationId}`) =>
    server === undefined ? "in the console." : `in the console: ${server.replace(/\/+$/, "")}${path}`;
  const tooLong = (name: string) =>
    `${name} needs an approval, and its input is too long for this place. Answer ${inConsole()}`;
  if (frame.omitted)
    switch (frame.type) {
      case "message.completed":
        return { text: `The answer is too long for this place. Read it ${inConsole()}` };
      case "approval.requested":
        return { text: tooLong("A call") };
      default:
        return null;
    }
  switch (frame.type) {
    case "message.completed": {
      const { content, interim } = frame.data;
      return content.trim() === "" || (interim && !withInterim) ? null : { text: content };
    }
    case "turn.failed":
      // The message of the error may name servers.
      return { text: `I could not answer (${frame.data.error.code}).` };
    case "work.held": {
      const { runId } = frame.data;
      if (runId === undefined) return null;
      return { text: `A workflow waits for an answer of a person. Answer ${inConsole(`/runs/${runId}`)}` };
    }
    case "approval.requested": {
      const { name, input, elicitation, of } = frame.data;
      const asked = of ?? { name, input, elicitation };
      if (asked.input === undefined) return { text: tooLong(`\`${asked.name}\``) };
      const shown = JSON.stringify(asked.input, null, 2);
      const about = asked.elicitation === undefined ? "needs an approval:" : questionOf(asked.elicitation);
      const text = `\`${asked.name}\` ${about}\n\n\`\`\`json\n${shorten(shown, MAX_INPUT_LENGTH)}\n\`\`\``;
      // A person approves only an input that is shown whole.
      if (shown.length > MAX_INPUT_LENGTH)
        return { text: `${text}\n\nThe input is longer. Answer ${inConsole()}` };
      if (asked.elicitation !== undefined && !isConfirmation(asked.elicitation))
        return { text: `${text}\n\nAnswer ${inConsole()}` };
      const operationId = of?.operationId ?? frame.operationId ?? "";
      return { text, approval: { operationId: buttonId(operationId, asked.elicitation?.round) } };
    }
    default:
      return null;
  }
}

function questionOf({ message, host }: ElicitationView): string {
  const address = host === undefined ? "" : `\n\nIt wants you to open an address at ${host}.`;
  return `asks:\n\n${message.replaceAll(/^/gm, "> ")}${address}\n\nThe input of the call:`;
}

/** Returns the id of a button: the operation, and the round of its question. */
function buttonId(operationId: string, round: number | undefined): string {
  return round === undefined ? operationId : `${operationId}#${round}`;
}

/** Returns the operation that a button answers, and the answer (CHANNEL-9). */
export function pressed(id: string, approved: boolean): { operationId: string; answer: ApprovalAnswer } {
  const [operationId = "", round] = id.split("#");
  if (round === undefined) return { operationId, answer: { approved } };
  return { operationId, answer: { approved, round: Number(round), ...(approved && { values: {} }) } };
}

/** Divides a text into parts of at most `max` units, if possible between lines or words. The parts together are the text, without blank ends. */
export function partsOf(text: string, max = Number.POSITIVE_INFINITY): string[] {
  const parts: string[] = [];
  let rest = text.trim();
  while (rest.length > max) {
    const head = rest.slice(0, max + 1);
    const at = [head.lastIndexOf("\n"), head.lastIndexOf(" ")].find((index) => index > max / 2);
    const end = at ?? wholeLength(rest, max);
    parts.push(rest.slice(0, end).trimEnd());
    rest = rest.slice(end).trimStart();
  }
  return rest === "" ? parts : [...parts, rest];
}

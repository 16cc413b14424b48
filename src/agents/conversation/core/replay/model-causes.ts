/** The outcomes of model calls, from the entries that they caused. Pure. */
import { type ErrorCategory, isRetriable, type ModelError } from "../../../../model/error.ts";
import type { ModelReply } from "../../../../model/reply.ts";
import type { TokenEstimate } from "../../../../model/spending.ts";
import type { RequestTaint } from "../../../../model/taint.ts";
import type { TokenUsage } from "../../../../model/usage.ts";
import { defined } from "../../../../shared/defined.ts";
import { MAX_BACKOFF_MS } from "../conversation-limits.ts";
import { STAY_SILENT } from "../planning/silence-tool.ts";
import type { AttemptFacts, Signal } from "../signals.ts";
import type { CallRecord, Recalled, Turn } from "../turn.ts";
import { operationsOf } from "../turn-operations.ts";
import { type Cause, dataOf, type Scene, textIn } from "./scene.ts";

/** The outcome of a call, without its address. */
type Outcome = { reply: ModelReply } | { error: ModelError; streamed: boolean };

/** Returns the signal of the outcome of the turn's model call. `taints` are the taints of its request. */
function outcome({ turn, recording, now, rest }: Scene, given: Outcome, taints: RequestTaint = {}): Cause[] {
  const call = turn?.call ?? null;
  if (turn === undefined || call === null) return [];
  const isOver = "reply" in given || !rest.some(({ type }) => type === "llm.call.failed");
  const { usage } = "reply" in given ? given.reply : {};
  const facts = {
    startedAt: now,
    finishedAt: now,
    ...(isOver ? countOf(recording.turn, turn) : defined({ usage })),
    ...taints,
  };
  const address = { turn: turn.n, item: call.item, attempt: call.attempt, facts, ...recalledIn(rest) };
  const signal: Signal =
    "reply" in given
      ? { type: "conversation.llm.completed", ...address, ...given }
      : { type: "conversation.llm.failed", ...address, ...given };
  return [{ signal }];
}

/** Returns the recalled memories of a call as a member. */
function recalledIn(rest: Scene["rest"]): { recalled?: Recalled } {
  const entry = rest.find(({ type }) => type === "memory.recalled");
  if (entry === undefined) return {};
  const { memories, code } = dataOf(entry);
  // SAFETY: the entry lists the recalled memories.
  const used = (memories ?? []) as unknown as Recalled["used"];
  return { recalled: { used, ...(typeof code === "string" ? { failed: code } : {}) } };
}

/** Returns the recorded count of the call in progress, without the part that its earlier attempts have. */
export function countOf(recorded: Turn, turn: Turn): Pick<AttemptFacts, "usage" | "estimate"> {
  const made = turn.calls ?? [];
  const open = made.findIndex(({ finishedAt }) => finishedAt === undefined);
  const record = recorded.calls?.[open < 0 ? made.length : open];
  const before = open < 0 ? undefined : made[open];
  return record === undefined ? {} : restOf(record, before);
}

function restOf(
  record: CallRecord,
  before: CallRecord | undefined,
): Pick<AttemptFacts, "usage" | "estimate"> {
  const usage = record.usage && without<TokenUsage>(record.usage, before?.usage);
  const estimate = record.estimate && without<TokenEstimate>(record.estimate, before?.estimate);
  return defined({ usage, estimate });
}

/** Subtracts the counts of a record from the counts of another. */
function without<Counts extends object>(counts: Counts, part: Partial<Counts> | undefined): Counts {
  const entries = Object.entries(counts).map(([name, count]) => {
    // SAFETY: the members of counts are numbers.
    const less = ((part as Record<string, number> | undefined)?.[name] ?? 0) as number;
    return [name, typeof count === "number" ? Math.max(0, count - less) : count];
  });
  // SAFETY: the members are those of `counts`.
  return Object.fromEntries(entries) as Counts;
}

export function replied(scene: Scene, item: number | undefined): Cause[] {
  const { turn: recorded } = scene.recording;
  const index = recorded.replies.findIndex((reply) => reply.item === item);
  const found = recorded.replies[index];
  if (found === undefined) {
    // The turn ended without a message.
    const toolCalls = [{ id: "call", name: STAY_SILENT.name, arguments: {} }];
    return outcome(scene, { reply: { text: "", toolCalls, finishReason: "tool_calls" } });
  }
  const { text, notice, finishReason, reasoning, usage, providerMessageId, taint, echoes } = found;
  const toolCalls = operationsOf(recorded, index).map(
    ({ toolCallId: id, name, input, invalidArguments }) => ({
      id,
      name,
      arguments: input,
      ...defined({ invalidArguments }),
    }),
  );
  // The platform's notice replaces an empty text. The parts before a pause are in the whole text.
  const given = notice ? "" : text.slice(scene.turn?.paused?.text.length ?? 0);
  const members = defined({ reasoning, usage, providerMessageId });
  return outcome(
    scene,
    { reply: { text: given, toolCalls, finishReason, ...members } },
    defined({ taint, echoes }),
  );
}

/** Returns an empty reply: paused, or the end of a call. */
export function emptyReply(scene: Scene, finishReason: ModelReply["finishReason"]): Cause[] {
  return outcome(scene, { reply: { text: "", toolCalls: [], finishReason } });
}

/** The text that planning gives to the failure of a model call. */
const FAILURE = /^The model call failed \((\w+)\): ([\s\S]*)$/;
const EARLIER = /; models tried before: [\s\S]*$/;

/** Returns the failure of the turn's model call, from the text of its entry or of the turn's error. */
export function failed(scene: Scene, message: string): Cause[] {
  const [, category = "", rest = ""] = FAILURE.exec(message) ?? [];
  if (category === "") return [];
  // SAFETY: planning writes the category of the failure.
  const known = category as ErrorCategory;
  const reset = scene.rest.find(({ type }) => type === "message.reset");
  const streamed = ["retry", "fallback"].includes(textIn(dataOf(reset), "reason"));
  const error: ModelError = {
    category: known,
    message: rest.replace(EARLIER, ""),
    retriable: isRetriable(known),
    provider: "offline",
  };
  const later = { ...error, retryAfterMs: MAX_BACKOFF_MS };
  const other = { ...error, retriable: !error.retriable };
  return [error, later, other].flatMap((one) => outcome(scene, { error: one, streamed }));
}

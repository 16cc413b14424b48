/** The checker of the scenario `background` of the kill harness: a good history passes, and each violation is found. */
import { expect, it } from "vitest";
import { checkBackground, missingIn } from "../../bench/kills/background/check.ts";
import { type BackgroundHistory, newBackgroundHistory } from "../../bench/kills/background/history.ts";
import { type BackgroundScript, textOf } from "../../bench/kills/background/script.ts";
import { MAX_RECOVERIES } from "../../src/agents/conversation/core/conversation-limits.ts";
import type { JournalEntryView } from "../../src/protocol/conversation-schemas.ts";

const CONVERSATION = "conv_1";
const FIRST: BackgroundScript = { key: "a", calls: ["research", "charge"], ms: 1 };
const SECOND: BackgroundScript = { key: "b", calls: ["pay"], ms: 1 };

/** A batch of two messages, sent twice. A kill makes the outcome of the first charge unknown. */
function goodHistory(): BackgroundHistory {
  const entry = (type: string, turnId: string, operationId?: string): JournalEntryView => ({
    seq: 0,
    type,
    time: "2026-01-01T00:00:00.000Z",
    turnId,
    ...(operationId === undefined ? {} : { operationId }),
  });
  const received: JournalEntryView = { seq: 0, type: "conversation.queue.received", time: "" };
  const journal = [
    entry("turn.started", "turn_a"),
    received,
    entry("turn.started", "turn_b"),
    entry("tool.requested", "turn_a", "op_1"),
    entry("tool.requested", "turn_a", "op_2"),
    entry("tool.requested", "turn_b", "op_3"),
    entry("turn.resumed", "turn_a"),
    entry("tool.interrupted", "turn_a", "op_2"),
    entry("tool.completed", "turn_a", "op_1"),
    entry("tool.failed", "turn_a", "op_2"),
    entry("turn.completed", "turn_a"),
    entry("tool.completed", "turn_b", "op_3"),
    entry("turn.completed", "turn_b"),
  ];
  const message = (turnId: string, script: BackgroundScript) => ({
    id: `msg_${turnId}`,
    role: "user" as const,
    turnId,
    content: textOf(script),
    createdAt: "2026-01-01T00:00:00.000Z",
  });
  return {
    ...newBackgroundHistory(),
    batches: [{ conversation: CONVERSATION, scripts: [FIRST, SECOND], tries: 2, accepted: ["a", "b"] }],
    hits: [
      { tool: "research", call: "a/0", operationId: "op_1" },
      { tool: "research", call: "a/0", operationId: "op_1" },
      { tool: "charge", call: "a/1", operationId: "op_2" },
      { tool: "pay", call: "b/0", operationId: "op_3" },
    ],
    given: [
      { call: "b/0", operationId: "op_3", status: 500 },
      { call: "b/0", operationId: "op_3", status: 200 },
    ],
    answers: [
      { key: "a", knows: [] },
      { key: "a", knows: ["op_1", "op_2"] },
      { key: "b", knows: ["op_3"] },
    ],
    kills: [{ at: 1, readyAt: 2 }],
    finals: [
      {
        conversation: CONVERSATION,
        journal,
        messages: [message("turn_a", FIRST), message("turn_b", SECOND)],
      },
    ],
  };
}

it("accepts a good and complete history", () => {
  expect(checkBackground(goodHistory())).toEqual([]);
  expect(missingIn(goodHistory())).toEqual([]);
});

it("names the missing events of a quiet run", () => {
  expect(missingIn(newBackgroundHistory())).toHaveLength(4);
});

function finalOf({ finals: [final] }: BackgroundHistory) {
  if (final === undefined) throw new Error("The good history has one conversation.");
  return final;
}

it("KILL-13 accepts a cancelled call of a turn that failed after too many crashes", () => {
  const history = goodHistory();
  giveUp(history, MAX_RECOVERIES);
  expect(checkBackground(history)).toEqual([]);
});

/** Lets the first turn fail after so many crashes, with its first call cancelled. */
function giveUp(history: BackgroundHistory, crashes: number): void {
  const { journal } = finalOf(history);
  for (const entry of journal) {
    if (entry.operationId === "op_1" && entry.type === "tool.completed") entry.type = "tool.cancelled";
    if (entry.turnId === "turn_a" && entry.type === "turn.completed") entry.type = "turn.failed";
  }
  const resumed = journal.find(({ type }) => type === "turn.resumed");
  if (resumed !== undefined) journal.push(...Array.from({ length: crashes - 1 }, () => resumed));
}

/** Removes the entries of a type, of one operation or turn. */
function without(history: BackgroundHistory, type: string, id: string): void {
  const final = finalOf(history);
  final.journal = final.journal.filter(
    (entry) => entry.type !== type || (entry.operationId ?? entry.turnId) !== id,
  );
}

const CASES: [rule: string, what: string, change: (history: BackgroundHistory) => void][] = [
  ["KILL-12", "an accepted message has no turn", (history) => void finalOf(history).messages.pop()],
  [
    "KILL-12",
    "a message that was sent again has two turns",
    (history) => finalOf(history).messages.push(...finalOf(history).messages.slice(-1)),
  ],
  ["KILL-12", "the batch changes its order", (history) => void finalOf(history).messages.reverse()],
  ["KILL-12", "a message is nobody's", (history) => void history.batches.splice(0)],
  ["KILL-12", "a turn never ends", (history) => without(history, "turn.completed", "turn_b")],
  [
    "KILL-12",
    "a turn fails",
    (history) => {
      for (const entry of finalOf(history).journal)
        if (entry.type === "turn.completed") entry.type = "turn.failed";
    },
  ],
  ["KILL-13", "an operation has no outcome", (history) => without(history, "tool.completed", "op_1")],
  ["KILL-13", "an operation fails without a kill", (history) => without(history, "tool.interrupted", "op_2")],
  ["KILL-13", "a call is cancelled after too few crashes", (history) => giveUp(history, MAX_RECOVERIES - 1)],
  ["KILL-13", "the answer does not know a result", (history) => void history.answers.splice(1, 1)],
  ["KILL-13", "a call is lost", (history) => without(history, "tool.requested", "op_3")],
  [
    "KILL-14",
    "a tool that acts once is called twice",
    (history) => void history.hits.push(...history.hits.slice(2)),
  ],
  ["KILL-14", "an operation succeeds without a call", (history) => void history.hits.splice(3)],
  ["KILL-14", "a result comes from nowhere", (history) => void history.given.splice(1)],
  [
    "KILL-14",
    "a result that was taken is not the outcome",
    (history) => {
      for (const entry of finalOf(history).journal)
        if (entry.operationId === "op_3" && entry.type === "tool.completed") entry.type = "tool.failed";
    },
  ],
];

it.each(CASES)("%s is broken if %s", (rule, _what, change) => {
  const history = goodHistory();
  change(history);
  expect(checkBackground(history).map((violation) => violation.rule)).toContain(rule);
});

/** The checker of forks, edits and regenerations under kills, on a handmade history: it passes, and each violation is found. */
import { expect, test } from "vitest";
import type { Script } from "../../bench/kills/script.ts";
import { textOf } from "../../bench/kills/script.ts";
import { checkVersions, missingInVersions } from "../../bench/kills/versions/check.ts";
import type { Act, VersionsFinal, VersionsHistory } from "../../bench/kills/versions/history.ts";
import type { JournalEntryView, MessageView, TurnView } from "../../src/protocol/conversation-schemas.ts";

const scriptOf = (key: string): Script => ({ key, rounds: [["once"]], pieces: 2, pieceMs: 1, toolMs: 1 });
const act = (kind: Act["kind"], key: string, more: Partial<Act>): Act => ({
  ...{ kind, key, conversation: "source", script: scriptOf(key), lost: 1, answers: [] },
  ...more,
});
const moveOf = (key: string) => ({
  toolCall: { name: "once", operationId: `op_${key}`, input: { url: `http://x/once?call=${key}/0/0` } },
  toolResult: { success: true, result: {} },
});
const turnOf = (id: string, key: string, more: object = {}) => {
  const { rounds } = scriptOf(key);
  const members = { id, status: "completed", answer: textOf(scriptOf(key), rounds.length) };
  // SAFETY: the checker reads these members only.
  return { ...members, moves: [moveOf(key)], ...more } as unknown as TurnView;
};
const entry = (seq: number, type: JournalEntryView["type"], turnId?: string): JournalEntryView => ({
  ...{ seq, type, time: "2026-01-01T00:00:00.000Z" },
  ...(turnId !== undefined && { turnId }),
});
const hit = (key: string) => ({
  ...({ kind: "tool", effect: "once", call: `${key}/0/0`, operationId: `op_${key}`, key } as const),
  ...{ at: 0, endedAt: 1, answered: true },
});
// SAFETY: the checker compares whole messages, and reads this member only.
const message = (turnId: string) => ({ turnId, content: turnId }) as unknown as MessageView;

function good(): VersionsHistory {
  const journal = [entry(1, "conversation.started"), entry(2, "turn.started", "a")];
  const source: VersionsFinal = {
    conversation: "source",
    journal: [...journal, entry(3, "turn.started", "b"), entry(4, "turn.started", "c")],
    turns: [
      turnOf("a", "ka", { replacedBy: "b" }),
      turnOf("b", "ka", { regenerates: "a", replacedBy: "c" }),
      turnOf("c", "kc", { edits: "b" }),
    ],
    messages: ["a", "b", "c"].map(message),
  };
  const fork: VersionsFinal = {
    conversation: "fork",
    journal: [...journal, entry(3, "conversation.forked")],
    turns: [turnOf("a", "ka")],
    messages: [message("a")],
  };
  return {
    kills: [{ at: 0, readyAt: 1 }],
    hits: [hit("ka"), hit("kc")],
    acts: [
      act("send", "ka", { answers: ["a", "a"] }),
      act("regenerate", "kb", { answers: ["b", "b"], of: "a", script: scriptOf("ka") }),
      act("edit", "kc", { answers: ["c", "c"], of: "b" }),
      act("fork", "kf", { answers: ["fork", "fork"], of: "a", script: scriptOf("ka") }),
    ],
    finals: [source, fork],
  };
}

test("accepts a good history", () => {
  expect(checkVersions(good())).toEqual([]);
  expect(missingInVersions(good())).toEqual([]);
});

const CASES: [rule: string, what: string, change: (history: VersionsHistory) => void][] = [
  [
    "KILLVERSION-1",
    "an act that is refused",
    ({ acts }) => void Object.assign(acts[1] ?? {}, { refused: "CONFLICT" }),
  ],
  ["KILLVERSION-1", "two turns of one key", ({ acts }) => void acts[1]?.answers.push("other")],
  ["KILLVERSION-1", "a lost turn", ({ finals }) => void finals[0]?.turns.pop()],
  ["KILLVERSION-1", "a lost fork", ({ finals }) => void finals.pop()],
  ["KILLVERSION-1", "a turn without an act", ({ acts }) => void acts.shift()],
  [
    "KILLVERSION-2",
    "a turn that fails",
    ({ finals }) => void Object.assign(finals[0]?.turns[2] ?? {}, { status: "failed" }),
  ],
  [
    "KILLVERSION-2",
    "another answer",
    ({ finals }) => void Object.assign(finals[0]?.turns[1] ?? {}, { answer: "No." }),
  ],
  ["KILLVERSION-2", "a version without its link", ({ finals }) => void delete finals[0]?.turns[2]?.edits],
  [
    "KILLVERSION-2",
    "a replaced turn without its link",
    ({ finals }) => void delete finals[0]?.turns[0]?.replacedBy,
  ],
  ["KILLVERSION-3", "a call that acts twice", ({ hits }) => void hits.push(hit("ka"))],
  [
    "KILLVERSION-3",
    "another operation id in a version",
    ({ hits }) => void hits.push({ ...hit("kc"), operationId: "op_x" }),
  ],
  ["KILLVERSION-3", "a result without a hit", ({ hits }) => void hits.pop()],
  [
    "KILLVERSION-4",
    "a fork with another journal",
    ({ finals }) => void finals[1]?.journal.splice(1, 1, entry(2, "turn.started", "b")),
  ],
  ["KILLVERSION-4", "a fork without a message", ({ finals }) => void finals[1]?.messages.pop()],
  [
    "KILLVERSION-4",
    "a gap in a journal",
    ({ finals }) => void finals[0]?.journal.splice(3, 1, entry(5, "turn.started", "c")),
  ],
];

test.each(CASES)("%s finds %s", (rule, _what, change) => {
  const history = good();
  change(history);
  expect(checkVersions(history).join("\n")).toContain(rule);
});

test("a part without a fork proves too little", () => {
  const { acts, ...history } = good();
  expect(missingInVersions({ ...history, acts: acts.slice(0, 3) })).toEqual(["No act is a fork."]);
  const kills = Array.from({ length: 20 }, () => ({ at: 0, readyAt: 1 }));
  const calm = acts.map((one) => ({ ...one, lost: 0 }));
  expect(missingInVersions({ ...history, kills, acts: calm })).toHaveLength(3);
});

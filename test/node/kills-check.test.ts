/** The checker of the kill harness, on handmade histories: a good one passes, and each violation is found. */
import { describe, expect, it } from "vitest";
import { check } from "../../bench/kills/check.ts";
import type { FinalState, History, Hit } from "../../bench/kills/history.ts";
import { interruptionsOf, rowsOf } from "../../bench/kills/measure.ts";
import type { Frame } from "../../src/client/index.ts";
import type { JournalEntryView } from "../../src/protocol/conversation-schemas.ts";
import { goodHistory } from "../support/kill-history.ts";

/** Returns the rules that a changed history violates. */
function broken(change: (history: History) => void): string[] {
  const history = goodHistory();
  change(history);
  return [...new Set(check(history).map(({ rule }) => rule))];
}

function finalOf({ finals }: History): FinalState {
  const [final] = finals;
  if (final === undefined) throw new Error("The good history has one conversation.");
  return final;
}

function frame<Type extends Frame["type"]>(
  history: History,
  type: Type,
  turnId: string,
): Extract<Frame, { type: Type }> {
  const found = finalOf(history).frames.find((one) => one.type === type && one.turnId === turnId);
  // SAFETY: the line above compares its type.
  return found as Extract<Frame, { type: Type }>;
}

function removeFrames(history: History, isGone: (frame: Frame) => boolean): void {
  const final = finalOf(history);
  final.frames = final.frames.filter((one) => !isGone(one));
}

function toolHits({ hits }: History, effect: string) {
  return hits.filter(
    (hit): hit is Extract<Hit, { kind: "tool" }> => hit.kind === "tool" && hit.effect === effect,
  );
}

function log({ connections }: History, index: number): History["connections"][number] {
  const found = connections[index];
  if (found === undefined) throw new Error("The good history has four connections.");
  return found;
}

/** Returns the frames of a type that a connection received. */
function received(history: History, index: number, type: Frame["type"]) {
  return log(history, index).frames.filter((one) => one.frame.type === type);
}

function note(history: History, type: JournalEntryView["type"], data: JournalEntryView["data"] = {}): void {
  const { journal } = finalOf(history);
  journal.push({ seq: journal.length + 1, type, time: "2026-01-01T00:01:00.000Z", data });
}

function failSecond(history: History, code: string): void {
  const end = frame(history, "turn.completed", "turn_b");
  Object.assign(end, { type: "turn.failed", data: { error: { code, message: "", retriable: true } } });
  finalOf(history).transcript.pop();
  removeFrames(history, ({ type, turnId }) => type === "message.completed" && turnId === "turn_b");
}

/** Ends the second turn as stopped, after this text was shown. */
function stopSecond(history: History, content: string): void {
  const end = frame(history, "turn.completed", "turn_b");
  const error = { code: "CANCELLED", message: "", retriable: true };
  Object.assign(end, { type: "turn.failed", data: { error } });
  Object.assign(frame(history, "message.completed", "turn_b").data, { content, stopped: true });
  Object.assign(finalOf(history).transcript.at(-1) ?? {}, { content });
}

it("accepts a good history", () => {
  expect(check(goodHistory())).toEqual([]);
});

const CASES: [rule: string, what: string, change: (history: History) => void][] = [
  [
    "KILL-1",
    "an acknowledged message has no turn",
    (history) => {
      removeFrames(history, ({ turnId }) => turnId === "turn_b");
      finalOf(history).transcript.splice(2);
    },
  ],
  [
    "KILL-1",
    "a conversation was not read",
    (history) => {
      history.finals = [];
    },
  ],
  [
    "KILL-1",
    "an acknowledgement named another turn",
    (history) => {
      history.acknowledgements.push({ key: "b", turnId: "turn_a", at: 0 });
    },
  ],
  [
    "KILL-1",
    "a turn never ends",
    (history) => removeFrames(history, ({ type }) => type === "turn.completed"),
  ],
  [
    "KILL-1",
    "a turn ends twice",
    (history) => {
      finalOf(history).frames.push(structuredClone(frame(history, "turn.completed", "turn_b")));
    },
  ],
  ["KILL-1", "a turn fails", (history) => failSecond(history, "MODEL_FAILED")],
  ["KILL-1", "a turn gives up too early", (history) => failSecond(history, "RECOVERY_EXHAUSTED")],
  [
    "KILL-1",
    "the message on record is another",
    (history) => {
      frame(history, "message.user", "turn_b").data.content = "something else";
    },
  ],
  [
    "KILL-2",
    "an unacknowledged message has two turns",
    (history) => {
      history.acknowledgements = history.acknowledgements.filter(({ key }) => key !== "b");
      const final = finalOf(history);
      const again = structuredClone(final.frames.filter(({ turnId }) => turnId === "turn_b"));
      final.frames.push(...again.map((one) => ({ ...one, turnId: "turn_c" })));
    },
  ],
  [
    "KILL-2",
    "nobody sent what a turn answers",
    (history) => {
      history.messages.pop();
      history.acknowledgements.pop();
    },
  ],
  [
    "KILL-3",
    "a later message stands before an acknowledged one",
    (history) => {
      const [first, second] = history.messages;
      if (first === undefined || second === undefined) return;
      history.messages = [
        { ...second, at: 0 },
        { ...first, at: first.at + 1e9 },
      ];
    },
  ],
  [
    "KILL-3",
    "the messages of one socket are the wrong way round",
    (history) => {
      for (const message of history.messages) message.manner = "socket";
      history.messages.reverse();
    },
  ],
  [
    "KILL-4",
    "the journal has a gap",
    (history) => {
      finalOf(history).journal.splice(8, 1);
    },
  ],
  [
    "KILL-4",
    "a connection got a frame twice",
    (history) => {
      const { frames } = log(history, 0);
      frames.push(...frames.slice(-1));
    },
  ],
  [
    "KILL-4",
    "a connection missed a frame",
    (history) => {
      log(history, 0).frames.splice(2, 1);
    },
  ],
  [
    "KILL-4",
    "a connection got another fact than is on record",
    (history) => {
      const [one] = received(history, 0, "tool.completed");
      if (one?.frame.type === "tool.completed") one.frame = { ...one.frame, data: { result: "another" } };
    },
  ],
  [
    "KILL-4",
    "a client came back further on",
    (history) => {
      const second = log(history, 1);
      second.scope = { of: "conversation", from: 10 };
      second.frames = second.frames.filter(({ frame: { seq } }) => seq === undefined || seq > 10);
    },
  ],
  [
    "KILL-4",
    "a client came back further back",
    (history) => {
      const second = log(history, 1);
      second.scope = { of: "conversation", from: 7 };
      second.frames.unshift(...log(history, 0).frames.slice(-1));
    },
  ],
  [
    "KILL-4",
    "a stream of one turn has a frame of another",
    (history) => {
      log(history, 3).frames.push({ at: 0, frame: frame(history, "turn.started", "turn_b") });
    },
  ],
  [
    "KILL-5",
    "a delta is missing",
    (history) => {
      const { frames } = log(history, 2);
      frames.splice(
        frames.findIndex((one) => one.frame.type === "message.delta"),
        1,
      );
    },
  ],
  [
    "KILL-5",
    "a delta comes twice",
    (history) => {
      const { frames } = log(history, 2);
      const at = frames.findLastIndex((one) => one.frame.type === "message.delta");
      frames.splice(at, 0, ...frames.slice(at, at + 1));
    },
  ],
  [
    "KILL-5",
    "the streamed text is no beginning of the message",
    (history) => {
      for (const one of received(history, 2, "message.delta")) {
        if (one.frame.type !== "message.delta") continue;
        const { data } = one.frame;
        one.frame = { ...one.frame, data: { ...data, text: data.text.toUpperCase() } };
      }
    },
  ],
  [
    "KILL-6",
    "an answer stands there twice",
    (history) => {
      const answer = frame(history, "message.completed", "turn_b");
      answer.data.content += answer.data.content;
    },
  ],
  [
    "KILL-6",
    "the transcript holds an answer twice",
    (history) => {
      finalOf(history).transcript.push(...finalOf(history).transcript.slice(-1));
    },
  ],
  [
    "KILL-6",
    "the transcript lost a message",
    (history) => {
      finalOf(history).transcript.shift();
    },
  ],
  [
    "KILL-6",
    "a text was shown twice in a row",
    (history) => {
      history.shown.push({ turnId: "turn_a", text: "a/1.0a/1.0" });
    },
  ],
  [
    "KILL-7",
    "a `once` tool was hit twice",
    (history) => {
      history.hits.push(...structuredClone(toolHits(history, "once")));
    },
  ],
  [
    "KILL-7",
    "a tool succeeded that nobody hit",
    (history) => {
      history.hits = history.hits.filter((hit) => hit.kind !== "tool" || hit.effect !== "once");
    },
  ],
  [
    "KILL-7",
    "an idempotent tool ran again under another id",
    (history) => {
      for (const hit of toolHits(history, "idempotent").slice(1)) hit.operationId = "op_other";
    },
  ],
  [
    "KILL-7",
    "an idempotent tool failed",
    (history) => {
      const [, , , , , , , done] = finalOf(history).frames;
      if (done === undefined) return;
      const error = { code: "EXECUTION_FAILED", message: "Outcome unknown: …", retriable: false };
      Object.assign(done, { type: "tool.failed", data: { error } });
    },
  ],
  [
    "KILL-7",
    "a `once` tool failed, but not with its outcome unknown",
    (history) => {
      const done = frame(history, "tool.completed", "turn_a");
      const error = { code: "EXECUTION_FAILED", message: "No.", retriable: false };
      Object.assign(done, { type: "tool.failed", data: { error } });
    },
  ],
  [
    "KILL-7",
    "two calls have one operation id",
    (history) => {
      const [hit] = toolHits(history, "once");
      if (hit !== undefined) history.hits.push({ ...hit, key: "b", call: "b/0/0" });
    },
  ],
  [
    "KILL-8",
    "the model was called again without a kill",
    (history) => {
      const call = history.hits.find(({ kind }) => kind === "model");
      if (call !== undefined) history.hits.push({ ...call }, { ...call });
    },
  ],
  [
    "KILL-8",
    "a tool ran again without a kill",
    (history) => {
      const [hit] = toolHits(history, "idempotent");
      if (hit !== undefined) history.hits.push({ ...hit }, { ...hit });
    },
  ],
  ["KILL-1", "a turn ended stopped that nobody had stopped", (history) => stopSecond(history, "b/0.0")],
  [
    "KILL-6",
    "a stopped turn keeps a text that its model did not write",
    (history) => {
      stopSecond(history, "Something else.");
      history.stops.push({ key: "b", turnId: "turn_b", outcome: "acknowledged" });
    },
  ],
  [
    "KILL-10",
    "a turn completed although its stop was acknowledged",
    (history) => history.stops.push({ key: "a", turnId: "turn_a", outcome: "acknowledged" }),
  ],
  ["KILL-11", "a compaction never ends", (history) => note(history, "context.compaction.started")],
  [
    "KILL-11",
    "a compaction took more than three attempts",
    (history) => {
      note(history, "context.compaction.started");
      note(history, "context.compaction.failed", { attempt: 4, final: true });
    },
  ],
  [
    "KILL-11",
    "a summary was recorded that the model did not give",
    (history) => {
      note(history, "context.compaction.started");
      note(history, "context.compacted");
    },
  ],
  [
    "KILL-11",
    "a message stands in the summary and in full",
    (history) => history.requests.push({ key: "b", summarised: ["a"], shown: ["a", "b"] }),
  ],
  [
    "KILL-9",
    "an acknowledged turn went on only when it was read",
    (history) => {
      finalOf(history).readAt = 0;
    },
  ],
];

it.each(CASES)("%s finds that %s", (rule, _, change) => {
  expect(broken(change)).toContain(rule);
});

describe("allowed histories", () => {
  it("KILL-11 a compaction that gets its summary in the second attempt", () => {
    const compacted = (history: History) => {
      note(history, "context.compaction.started");
      note(history, "context.compaction.failed", { attempt: 1, final: false });
      note(history, "context.compacted");
      history.hits.push({ kind: "summary", key: "a", at: 0, endedAt: 1, answered: true });
      history.requests.push({ key: "b", summarised: ["a"], shown: ["b"] });
    };
    expect(broken(compacted)).toEqual([]);
  });

  it("KILL-8 a model call is repeated after a newer message of the user", () => {
    const repeated = (history: History) => {
      const call = history.hits.find(({ kind }) => kind === "model");
      if (call !== undefined) history.hits.push({ ...call }, { ...call });
    };
    expect(broken(repeated)).toEqual(["KILL-8"]);
    const reconsidered = (history: History) => {
      repeated(history);
      Object.assign(frame(history, "message.reset", "turn_a").data, { reason: "newer_message" });
    };
    expect(broken(reconsidered)).toEqual([]);
  });

  it("KILL-7 a `once` tool fails with an unknown outcome if a kill interrupted it, whether it was hit or not", () => {
    const interrupted = (history: History) => {
      const done = frame(history, "tool.completed", "turn_a");
      const error = { code: "EXECUTION_FAILED", message: "Outcome unknown: …", retriable: false };
      Object.assign(done, { type: "tool.failed", data: { error } });
      history.connections = [];
    };
    expect(broken(interrupted)).toEqual([]);
    const unhit = (history: History) => {
      interrupted(history);
      history.hits = history.hits.filter((hit) => hit.kind !== "tool" || hit.effect !== "once");
    };
    expect(broken(unhit)).toEqual([]);
    const unkilled = (history: History) => {
      interrupted(history);
      history.kills = history.kills.slice(2);
    };
    expect(broken(unkilled)).toContain("KILL-7");
  });

  it("KILL-1 KILL-6 KILL-10 a turn with a sent stop ends stopped, with a part of its text", () => {
    const stopped = (history: History) => {
      stopSecond(history, "b/0.0");
      history.stops.push({ key: "b", turnId: "turn_b", outcome: "sent" });
    };
    expect(broken(stopped)).toEqual([]);
  });

  it("KILL-2 an unacknowledged message has a turn or no turn", () => {
    const unacknowledged = (history: History) => {
      history.acknowledgements = history.acknowledgements.filter(({ key }) => key !== "b");
    };
    expect(broken(unacknowledged)).toEqual([]);
  });
});

describe("measurements", () => {
  it("name the work that each kill interrupted, the time to recover, and the cause that resumed the turn", () => {
    expect(interruptionsOf(goodHistory())).toEqual([
      { key: "a", in: "tool", resumedAfterMs: 1_000, by: "client" },
      { key: "a", in: "stream", resumedAfterMs: 1_000, by: "client" },
      { key: "b", in: "stream", resumedAfterMs: 8_000, by: "alarm" },
    ]);
  });

  it("count a turn that sleeps since a kill as interrupted once, over the kills that follow", () => {
    const history = goodHistory();
    const second = 1_000;
    const [, , last] = history.kills;
    if (last === undefined) throw new Error("The good history has three kills.");
    history.kills.push({ at: last.readyAt + second, readyAt: last.readyAt + 2 * second });
    expect(interruptionsOf(history).filter(({ key }) => key === "b")).toEqual([
      { key: "b", in: "stream", resumedAfterMs: 8_000, by: "alarm" },
    ]);
  });

  it("separately count a turn that only waits for the late result of a `once` tool", () => {
    const history = goodHistory();
    const [, , kill] = history.kills;
    if (kill === undefined) throw new Error("The good history has three kills.");
    const operationId = "op_late";
    history.hits = history.hits.map((hit) =>
      hit.key === "b" && hit.at <= kill.at && hit.endedAt > kill.at
        ? { ...hit, kind: "tool", effect: "once", call: "b/0/0", operationId }
        : hit,
    );
    const note = (type: "tool.interrupted" | "tool.failed", at: number) => {
      const { journal } = finalOf(history);
      journal.push({
        seq: journal.length + 1,
        type,
        turnId: "turn_b",
        operationId,
        time: new Date(at).toISOString(),
        data: {},
      });
    };
    const of = () => interruptionsOf(history).filter(({ key }) => key === "b");
    expect(of()).toMatchObject([{ in: "tool", by: "alarm" }]);
    note("tool.interrupted", kill.readyAt);
    expect(of()).toMatchObject([{ in: "tool", by: "result" }]);
    note("tool.failed", kill.at - 1);
    expect(of(), "it had its result before the kill").toMatchObject([{ in: "tool", by: "alarm" }]);
  });

  it("count how often work that was needed once was done", () => {
    const median = (metric: string) => rowsOf(goodHistory()).find((row) => row.metric === metric)?.median;
    expect(median("model calls per call needed")).toBeCloseTo(5 / 3, 2);
    expect(median("tool hits per operation")).toBe(1.5);
  });
});

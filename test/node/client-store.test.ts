/** The client's reducer: examples for each rule, and properties over generated conversations. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  addHistory,
  applyFrame,
  type Frame,
  initialState,
  isAnswering,
  isStopped,
  isStopping,
  type LiveConversation,
  lastError,
  type MessageView,
  type TurnItem,
  visibleMessages,
} from "../../src/client/index.ts";
import { addPending } from "../../src/client/outbox.ts";
import { conversationScript, conversationView, snapshotAt, type Wire } from "./client-script.ts";

const time = "2026-03-01T10:00:00.000Z";
const empty: Frame = {
  v: 1,
  type: "snapshot",
  seq: 0,
  time,
  data: { conversation: conversationView, turns: [], messages: [], partials: [], operations: [] },
};

const started: Frame = { v: 1, seq: 1, type: "turn.started", turnId: "t1", time, data: { agentId: "guide" } };
const question: Frame = {
  v: 1,
  seq: 2,
  type: "message.user",
  turnId: "t1",
  messageId: "m1",
  time,
  data: { clientId: "c1", content: "Hello?" },
};
const answerStarted: Frame = {
  v: 1,
  seq: 3,
  type: "message.started",
  turnId: "t1",
  messageId: "m2",
  time,
  data: { agentId: "guide" },
};

function delta(offset: number, text: string, messageId = "m2"): Frame {
  return { v: 1, type: "message.delta", turnId: "t1", messageId, time, data: { offset, text } };
}

function run(frames: readonly Frame[], state: LiveConversation = initialState): LiveConversation {
  return frames.reduce(applyFrame, state);
}

function items(state: LiveConversation, turnId = "t1"): readonly TurnItem[] {
  return state.turns.find(({ id }) => id === turnId)?.items ?? [];
}

function partialText(state: LiveConversation): string | undefined {
  return items(state).find((item) => item.type === "partial")?.text;
}

/** Returns the part of a state that must not depend on how it was reached: live, from a snapshot or by resuming. */
function essence(state: LiveConversation) {
  return {
    seq: state.seq,
    gate: state.conversation?.gate,
    messages: state.messages,
    turns: state.turns.map(({ id, status, agentId, error, items: all }) => ({
      id,
      status,
      agentId,
      error,
      messages: all.flatMap((item) => (item.type === "message" ? [item.message.id] : [])),
      partials: all.flatMap((item) => (item.type === "partial" ? [[item.id, item.text]] : [])),
      operations: all
        .flatMap((item) => (item.type === "tool" ? [item.operation] : []))
        .map(({ progress: _, ...operation }) => operation),
    })),
  };
}

describe("frames", () => {
  it("VIEW-2 streams an answer and replaces it with the completed message", () => {
    const streaming = run([empty, started, question, answerStarted, delta(0, "He"), delta(2, "llo")]);
    expect(partialText(streaming)).toBe("Hello");
    expect(isAnswering(streaming)).toBe(true);
    expect(visibleMessages(streaming).map(({ role, status, content }) => [role, status, content])).toEqual([
      ["user", "sent", "Hello?"],
      ["agent", "streaming", "Hello"],
    ]);

    const done = run(
      [
        {
          v: 1,
          seq: 5,
          type: "message.completed",
          turnId: "t1",
          messageId: "m2",
          time,
          data: { agentId: "guide", content: "Hello!" },
        },
        {
          v: 1,
          seq: 6,
          type: "turn.completed",
          turnId: "t1",
          time,
          data: { issues: { toolFailures: 1 }, output: { n: 1 } },
        },
      ],
      streaming,
    );
    expect(items(done).map(({ type, id }) => [type, id])).toEqual([
      ["message", "m1"],
      ["message", "m2"],
    ]);
    expect(done.messages.map(({ content }) => content)).toEqual(["Hello?", "Hello!"]);
    expect(done.turns[0]).toMatchObject({
      status: "completed",
      completedAt: time,
      issues: { toolFailures: 1 },
      output: { n: 1 },
    });
    expect(isAnswering(done)).toBe(false);
  });

  it("VIEW-2 the error of the newest turn is shown until the next message; a stop is no error", () => {
    const error = { code: "MODEL_UNAVAILABLE", message: "No model answers at model.test.", retriable: true };
    const failed: Frame = { v: 1, seq: 3, type: "turn.failed", turnId: "t1", time, data: { error } };
    const state = run([empty, started, question, failed]);
    expect(lastError(state)).toMatchObject(error);
    const pending = addPending(state, { clientId: "c2", content: "Again", createdAt: time });
    expect(lastError(pending)).toBeUndefined();
    const next: Frame = { ...started, seq: 4, turnId: "t2" };
    expect(lastError(run([next], state))).toBeUndefined();
    const stopped = { ...error, code: "CANCELLED" };
    expect(
      lastError(run([empty, started, question, { ...failed, data: { error: stopped } } as Frame])),
    ).toBeUndefined();
  });

  it("CLIENT-3: interim text is a thought of the turn and no message", () => {
    const state = run([
      empty,
      started,
      question,
      answerStarted,
      delta(0, "Let me calculate."),
      {
        v: 1,
        seq: 4,
        type: "message.completed",
        turnId: "t1",
        messageId: "m2",
        time,
        data: { agentId: "guide", content: "Let me calculate.", interim: true },
      },
    ]);
    expect(items(state).at(-1)).toEqual({ type: "thought", id: "m2", text: "Let me calculate." });
    expect(state.messages.map(({ id }) => id)).toEqual(["m1"]);
    expect(visibleMessages(state)).toHaveLength(1);
  });

  it("CLIENT-3: empty interim text is removed", () => {
    const state = run([
      empty,
      started,
      answerStarted,
      {
        v: 1,
        seq: 4,
        type: "message.completed",
        turnId: "t1",
        messageId: "m2",
        time,
        data: { agentId: "guide", content: " ", interim: true },
      },
    ]);
    expect(items(state)).toEqual([]);
  });

  it("follows a tool through progress to its result, and another to its failure", () => {
    const error = { code: "TIMEOUT", message: "It took too long.", retriable: true };
    const tool = { turnId: "t1", operationId: "o1", time, v: 1 } as const;
    const running = run([
      empty,
      started,
      { ...tool, seq: 2, type: "tool.requested", data: { name: "calculate", input: { a: 1 }, async: false } },
      { ...tool, seq: 3, type: "tool.progress", data: { progress: 0.5 } },
    ]);
    expect(items(running)[0]).toMatchObject({ operation: { state: "running", progress: 0.5 } });
    const ended = run(
      [
        { ...tool, seq: 4, type: "tool.completed", data: { result: 84 } },
        {
          ...tool,
          seq: 5,
          operationId: "o2",
          type: "tool.requested",
          data: { name: "search", input: {}, async: false },
        },
        { ...tool, seq: 6, operationId: "o2", type: "tool.failed", data: { error } },
      ],
      running,
    );
    expect(items(ended)).toMatchObject([
      { operation: { id: "o1", name: "calculate", input: { a: 1 }, state: "completed", result: 84 } },
      { operation: { id: "o2", name: "search", state: "failed", error } },
    ]);
  });

  it("shows a retry until the next attempt gets somewhere, and keeps count of it", () => {
    const failedAttempt: Frame = {
      v: 1,
      seq: 4,
      type: "error",
      turnId: "t1",
      time,
      data: { code: "MODEL_FAILED", message: "The model is overloaded." },
    };
    const reset: Frame = {
      v: 1,
      seq: 5,
      type: "message.reset",
      turnId: "t1",
      messageId: "m2",
      time,
      data: { reason: "retry" },
    };
    const retrying = run([empty, started, answerStarted, delta(0, "Half an ans"), failedAttempt, reset]);
    expect(retrying.turns[0]).toMatchObject({ retrying: true, status: "active" });
    expect(retrying.turns[0]?.retries).toEqual([
      { code: "MODEL_FAILED", message: "The model is overloaded.", time },
    ]);
    expect(items(retrying)[0]).toMatchObject({ type: "partial", text: "", restarted: true });

    const again = applyFrame(retrying, delta(0, "Whole"));
    expect(again.turns[0]?.retrying).toBe(false);
    expect(again.turns[0]?.retries).toHaveLength(1);
    expect(partialText(again)).toBe("Whole");
  });

  it("ends a failed turn with its error and without its half-written text", () => {
    const error = { code: "MODEL_FAILED", message: "No answer after three attempts.", retriable: true };
    const state = run([
      empty,
      started,
      question,
      answerStarted,
      delta(0, "Half"),
      { v: 1, seq: 4, type: "turn.failed", turnId: "t1", time, data: { error } },
      delta(0, "Half more"),
    ]);
    expect(state.turns[0]).toMatchObject({ status: "failed", error, completedAt: time });
    expect(items(state).map(({ type }) => type)).toEqual(["message"]);
  });

  it("G18 STOP-3 VIEW-2 replaces the partial message with the stopped message, and ends its tools as cancelled", () => {
    const error = { code: "CANCELLED", message: "It was stopped.", retriable: false };
    const tool = { v: 1, turnId: "t1", operationId: "o1", time } as const;
    const running = run([
      empty,
      started,
      question,
      { ...tool, seq: 3, type: "tool.requested", data: { name: "search", input: {}, async: false } },
      { ...answerStarted, seq: 4 },
      delta(0, "Hal"),
    ]);
    const before = items(running).map(({ id }) => id);
    const data = { agentId: "guide", content: "Half", stopped: true } as const;
    const stopped = run(
      [
        { v: 1, seq: 5, type: "message.completed", turnId: "t1", messageId: "m2", time, data },
        { ...tool, seq: 6, type: "tool.cancelled", data: { error } },
        { v: 1, seq: 7, type: "turn.failed", turnId: "t1", time, data: { error } },
        delta(3, "f and more"),
      ],
      running,
    );
    expect(items(stopped).map(({ id }) => id)).toEqual(before);
    expect(items(stopped)).toMatchObject([
      { type: "message" },
      { type: "tool", operation: { state: "cancelled", error } },
      { type: "message", message: { content: "Half", stopped: true } },
    ]);
    expect(visibleMessages(stopped)).toMatchObject([
      { role: "user" },
      { role: "agent", status: "sent", content: "Half", stopped: true },
    ]);
    expect(stopped.conversation?.gate).toBe("idle");
  });

  it("G18 STOP-2 shows whether the conversation runs, is stopped or idle", () => {
    const updated = (seq: number, gate: "cancelled" | "idle"): Frame => {
      return { v: 1, seq, type: "conversation.updated", time, data: { gate } };
    };
    const running = run([empty, started]);
    expect(running.conversation?.gate).toBe("running");
    const stopped = applyFrame(running, updated(4, "cancelled"));
    expect([stopped.conversation?.gate, isStopped(stopped)]).toEqual(["cancelled", true]);
    const resumed = applyFrame(stopped, updated(5, "idle"));
    expect([resumed.conversation?.gate, isStopped(resumed)]).toEqual(["running", false]);
  });

  it("ASYNC-2 shows that a turn works in the background, and that no answer is in progress", () => {
    const requested: Frame = {
      ...{ v: 1, seq: 4, type: "tool.requested", turnId: "t1", operationId: "op_1", time },
      data: { name: "job", input: {}, async: true },
    };
    const waits: Frame = {
      v: 1,
      seq: 5,
      type: "turn.waiting",
      turnId: "t1",
      time,
      data: { reason: "operations" },
    };
    const waiting = run([empty, started, question, requested, waits]);
    expect(waiting.turns[0]).toMatchObject({ status: "active", phase: "waiting" });
    expect(waiting.turns[0]?.items.at(-1)).toMatchObject({ operation: { async: true, state: "running" } });
    expect([isAnswering(waiting), waiting.conversation?.gate]).toEqual([false, "running"]);
    const asked: LiveConversation = { ...waiting, stops: [{ type: "turn.cancel", turnId: "t1" }] };
    expect([isStopping(asked), isStopping(asked, "t1")]).toEqual([false, true]);
    const next = applyFrame(waiting, { ...answerStarted, seq: 6 });
    expect([isAnswering(next), next.turns[0]?.phase]).toEqual([true, undefined]);
  });

  it("DEFER-5 shows the deadline of a deferred result, and that no answer is in progress", () => {
    const base = { v: 1, turnId: "t1", time } as const;
    const call = { ...base, operationId: "op_1" };
    const requested: Frame = {
      ...{ ...call, seq: 4, type: "tool.requested" },
      data: { name: "pay", input: {}, async: false },
    };
    const expiresAt = "2026-03-02T10:00:00.000Z";
    const deferred: Frame = { ...call, seq: 5, type: "tool.deferred", data: { expiresAt } };
    const waits: Frame = { ...base, seq: 6, type: "turn.waiting", data: { reason: "operations" } };
    const waiting = run([empty, started, question, requested, deferred, waits]);
    expect(waiting.turns[0]?.items.at(-1)).toMatchObject({
      operation: { state: "running", deferredUntil: expiresAt },
    });
    expect([isAnswering(waiting), waiting.turns[0]?.phase]).toEqual([false, "waiting"]);
    const paid = applyFrame(waiting, { ...call, seq: 7, type: "tool.completed", data: { result: "paid" } });
    expect(paid.turns[0]?.items.at(-1)).not.toHaveProperty("operation.deferredUntil");
    const next = applyFrame(paid, { ...answerStarted, seq: 8 });
    expect([isAnswering(next), next.turns[0]?.phase]).toEqual([true, undefined]);
  });

  it("shows that the run of a call waits for a person, until the wait or the call is over", () => {
    const base = { v: 1, turnId: "t1", time } as const;
    const call = { ...base, operationId: "op_1" };
    const requested: Frame = {
      ...{ ...call, seq: 4, type: "tool.requested" },
      data: { name: "refund", input: {}, async: false },
    };
    const held: Frame = { ...call, seq: 5, type: "work.held", data: { runId: "run_1" } };
    const waits: Frame = { ...base, seq: 6, type: "turn.waiting", data: { reason: "approval" } };
    const waiting = run([empty, started, question, requested, held, waits]);
    expect(waiting.turns[0]?.items.at(-1)).toMatchObject({
      operation: { state: "running", held: true, runId: "run_1" },
    });
    const released = applyFrame(waiting, { ...call, seq: 7, type: "work.released", data: {} });
    expect(released.turns[0]).not.toHaveProperty("phase");
    expect(released.turns[0]?.items.at(-1)).not.toHaveProperty("operation.held");
    const done = applyFrame(waiting, { ...call, seq: 7, type: "tool.completed", data: { result: true } });
    expect(done.turns[0]?.items.at(-1)).not.toHaveProperty("operation.held");
  });

  it("TOOLRETRY-1 counts the attempts of a call, each with its own progress", () => {
    const call = { v: 1, turnId: "t1", operationId: "op_1", time } as const;
    const requested: Frame = {
      ...{ ...call, seq: 4, type: "tool.requested" },
      data: { name: "rates", input: {}, async: false },
    };
    const reported: Frame = { ...call, type: "tool.progress", data: { progress: { percent: 40 } } };
    const failed: Frame = {
      ...{ ...call, seq: 5, type: "error" },
      data: { code: "TIMEOUT", message: "Too slow.", retriable: true },
    };
    const again = run([empty, started, question, requested, reported, failed]);
    expect(again.turns[0]?.items.at(-1)).toMatchObject({ operation: { state: "running", attempt: 2 } });
    expect(again.turns[0]?.items.at(-1)).not.toHaveProperty("operation.progress");
    const third = applyFrame(again, { ...failed, seq: 6 });
    expect(third.turns[0]?.items.at(-1)).toMatchObject({ operation: { attempt: 3 } });
  });

  it("shows that a turn waits, until it begins or ends", () => {
    const queued: Frame = { v: 1, seq: 3, type: "turn.queued", turnId: "t1", time, data: { position: 1 } };
    const waiting = run([empty, started, question, queued]);
    expect(waiting.turns[0]?.phase).toBe("queued");
    expect(applyFrame(waiting, { ...answerStarted, seq: 4 }).turns[0]).not.toHaveProperty("phase");
    const error = { code: "CANCELLED", message: "The turn was stopped.", retriable: true };
    const stopped = applyFrame(waiting, {
      v: 1,
      seq: 4,
      type: "turn.failed",
      turnId: "t1",
      time,
      data: { error },
    });
    expect(stopped.turns[0]).not.toHaveProperty("phase");
  });

  it("takes title and status from conversation.updated", () => {
    const state = run([
      empty,
      { v: 1, seq: 1, type: "conversation.updated", time, data: { title: "Numbers" } },
      { v: 1, seq: 2, type: "conversation.updated", time, data: { status: "waiting" } },
    ]);
    expect(state.conversation).toMatchObject({ title: "Numbers", status: "waiting" });
  });

  it("notes a failed memory extraction as an issue of its turn", () => {
    const state = run([
      empty,
      started,
      {
        v: 1,
        seq: 2,
        type: "turn.finalized",
        turnId: "t1",
        time,
        data: { memoryExtractionStatus: "failed" },
      },
    ]);
    expect(state.turns[0]?.issues).toEqual({ memoryExtractionFailed: true });
  });

  it("A40 shows that extractions fail until one completes", () => {
    const error = { code: "MEMORY_EXTRACTION_FAILING", message: "Nothing is saved.", retriable: false };
    const failing = run([empty, started, { v: 1, seq: 2, type: "error", time, data: error }]);
    expect(failing.error).toEqual(error);
    const data = { memoryExtractionStatus: "completed" } as const;
    const state = applyFrame(failing, { v: 1, seq: 3, type: "turn.finalized", turnId: "t1", time, data });
    expect(state.error).toBeNull();
  });

  it("CLIENT-5: an unknown type only advances seq", () => {
    const state = run([empty, started]);
    // SAFETY: a newer server's frame, which the types of this version cannot name.
    const unknown = { v: 1, seq: 9, type: "participant.renamed", time, data: {} } as unknown as Frame;
    expect(applyFrame(state, unknown)).toEqual({ ...state, seq: 9 });
  });

  it("VIEW-1: a delta changes its own turn's object and no other", () => {
    const other: Frame = { ...started, seq: 3, turnId: "t0" };
    const before = run([empty, started, question, other, { ...answerStarted, seq: 4 }]);
    const after = applyFrame(before, delta(0, "He"));
    expect(after.messages).toBe(before.messages);
    expect(after.turns[1]).toBe(before.turns[1]);
    expect(after.turns[0]).not.toBe(before.turns[0]);
    expect(after.turns[0]?.items[0]).toBe(before.turns[0]?.items[0]);
  });
});

describe("deltas", () => {
  const streaming = run([empty, started, answerStarted, delta(0, "Hello")]);

  it.each([
    ["a repeated first delta", [delta(0, "He")], "Hello"],
    ["a repeated last delta", [delta(3, "lo")], "Hello"],
    ["an overlapping delta", [delta(3, "lo there")], "Hello there"],
    ["a delta beyond the end", [delta(9, "lost")], "Hello"],
    ["the whole text at offset 0", [delta(9, "lost"), delta(0, "Hello, all lost")], "Hello, all lost"],
    ["a text that begins differently", [delta(0, "Good day")], "Good day"],
  ])("%s", (_, frames, expected) => {
    expect(partialText(run(frames, streaming))).toBe(expected);
  });

  it("counts offsets in UTF-16 units", () => {
    expect(partialText(run([started, answerStarted, delta(0, "👩‍🚀"), delta("👩‍🚀".length, "!")]))).toBe(
      "👩‍🚀!",
    );
  });

  it("begins a text without a seen start only at offset 0", () => {
    expect(items(run([started, delta(4, "late")]))).toEqual([]);
    expect(partialText(run([started, delta(0, "whole")]))).toBe("whole");
  });

  it("leaves a completed message alone", () => {
    const done = run(
      [
        {
          v: 1,
          seq: 4,
          type: "message.completed",
          turnId: "t1",
          messageId: "m2",
          time,
          data: { agentId: "guide", content: "Hello" },
        },
      ],
      streaming,
    );
    expect(applyFrame(done, delta(5, " again"))).toBe(done);
  });

  it("CLIENT-2: lost, doubled and reordered deltas leave a beginning of the text, and completion the complete text", () => {
    const perturbed = fc
      .array(fc.string({ minLength: 1, maxLength: 6, unit: "grapheme" }), { minLength: 1, maxLength: 12 })
      .chain((chunks) => {
        let offset = 0;
        const frames = chunks.map((text) => {
          const frame = delta(offset, text);
          offset += text.length;
          return frame;
        });
        const doubled = [...frames, ...frames];
        return fc.record({
          text: fc.constant(chunks.join("")),
          frames: fc.shuffledSubarray(doubled, { minLength: 0, maxLength: doubled.length }),
        });
      });
    fc.assert(
      fc.property(perturbed, ({ text, frames }) => {
        let state = run([empty, started, answerStarted]);
        for (const frame of frames) {
          state = applyFrame(state, frame);
          expect(text.startsWith(partialText(state) ?? "?")).toBe(true);
        }
        state = applyFrame(state, delta(0, text));
        expect(partialText(state)).toBe(text);
      }),
    );
  });
});

describe("messages of this client", () => {
  const pending = addPending(run([empty]), { clientId: "c1", content: "Hello?", createdAt: time });

  it("CLIENT-4: is pending until it is recorded, and keeps its key", () => {
    expect(visibleMessages(pending)).toMatchObject([{ key: "c1", status: "sending", content: "Hello?" }]);
    const recorded = run([started, question], pending);
    expect(recorded.pending).toEqual([]);
    expect(visibleMessages(recorded)).toMatchObject([{ key: "c1", id: "m1", status: "sent" }]);
  });

  it("CLIENT-4: a message of another client leaves it pending", () => {
    const other = run(
      [started, { ...question, data: { clientId: "c2", content: "Other" } } as Frame],
      pending,
    );
    expect(other.pending).toHaveLength(1);
    expect(other.messages).toHaveLength(1);
  });

  it("CLIENT-4: a snapshot that holds it records it", () => {
    const message: MessageView = {
      id: "m1",
      turnId: "t1",
      role: "user",
      content: "Hello?",
      createdAt: time,
      clientId: "c1",
    };
    const state = applyFrame(pending, {
      ...empty,
      seq: 2,
      data: { ...empty.data, messages: [message] },
    } as Frame);
    expect(state.pending).toEqual([]);
    expect(state.messages).toEqual([message]);
  });

  it("an error that refers to it rejects it; any other is the conversation's", () => {
    const refused = (ref?: string): Frame => ({
      v: 1,
      type: "error",
      time,
      data: { code: "TOO_LARGE", message: "Send at most 1 MiB.", ...(ref === undefined ? {} : { ref }) },
    });
    const error = { code: "TOO_LARGE", message: "Send at most 1 MiB.", retriable: false };
    expect(applyFrame(pending, refused("c1")).pending).toMatchObject([{ status: "rejected", error }]);
    expect(applyFrame(pending, refused()).error).toEqual(error);
    expect(applyFrame(pending, refused("c9")).pending).toMatchObject([{ status: "sending" }]);
  });
});

describe("history", () => {
  function message(n: number, turn = n): MessageView {
    const createdAt = new Date(Date.UTC(2026, 0, 1, 0, n)).toISOString();
    return {
      id: `m${n}`,
      turnId: `t${turn}`,
      role: n % 2 === 0 ? "user" : "agent",
      content: `${n}`,
      createdAt,
    };
  }
  const snapshot = (messages: MessageView[]): Frame =>
    ({ ...empty, seq: 9, data: { ...empty.data, messages } }) as Frame;
  const loaded = run([snapshot([message(10, 10), message(11, 10)])]);
  const ids = (state: LiveConversation) => state.messages.map(({ id }) => id);

  it("puts a page before the loaded messages, without loaded or newer messages", () => {
    const page = [message(6, 6), message(7, 6), message(10, 10), message(9, 9), message(12, 12)];
    const state = addHistory(loaded, { messages: page, turns: [] });
    expect(ids(state)).toEqual(["m6", "m7", "m10", "m11"]);
    expect(state.turns.map(({ id }) => id)).toEqual(["t6", "t10"]);
    expect(addHistory(state, { messages: page, turns: [] })).toBe(state);
  });

  it("ignores a page that is newer than all loaded messages", () => {
    expect(addHistory(loaded, { messages: [message(12, 12)], turns: [] })).toBe(loaded);
    expect(addHistory(initialState, { messages: [message(1, 1)], turns: [] })).toBe(initialState);
  });

  it("restores a turn's tools, thoughts and failure from its moves", () => {
    const error = { code: "MODEL_FAILED", message: "No.", retriable: true };
    const state = addHistory(loaded, {
      messages: [message(6, 6)],
      turns: [
        {
          id: "t6",
          conversationId: "c",
          answer: null,
          correlationId: "corr-0",
          caller: { type: "user", userId: "u" },
          input: "6",
          userMessageId: "m6",
          agentMessageIds: [],
          replyToMessageId: null,
          contextAssemblyRunId: null,
          memoryExtractionRunId: null,
          latencyMs: 5,
          usage: null,
          cost: null,
          spent: { tokens: 0, usd: 0, toolCalls: 0, modelCalls: 0 },
          calls: [],
          output: { n: 6 },
          status: "failed",
          agentId: "guide",
          createdAt: time,
          completedAt: time,
          error,
          moves: [
            {
              id: "mv1",
              sequence: 1,
              reasoning: "I should look.",
              toolCall: { operationId: "o1", name: "search", toolId: null, input: { q: "x" } },
              toolResult: { success: true, result: [1] },
              createdAt: time,
            },
            {
              id: "mv2",
              sequence: 2,
              toolCall: { operationId: "o2", name: "search", toolId: null, input: {} },
              toolResult: { success: false, error: { code: "CANCELLED", message: "No.", retriable: false } },
              createdAt: time,
            },
            { id: "mv3", sequence: 3, reasoning: "6", createdAt: time },
          ],
        },
      ],
    });
    expect(state.turns[0]).toMatchObject({
      output: { n: 6 },
      status: "failed",
      error,
      items: [
        { type: "message", id: "m6" },
        { type: "thought", text: "I should look." },
        { type: "tool", operation: { name: "search", state: "completed", result: [1] } },
        { type: "tool", operation: { name: "search", state: "cancelled" } },
      ],
    });
  });

  it("completes a turn if only its end was loaded", () => {
    const state = addHistory(run([snapshot([message(11, 10)])]), { messages: [message(10, 10)], turns: [] });
    expect(items(state, "t10").map(({ id }) => id)).toEqual(["m10", "m11"]);
  });

  it("survives a snapshot that continues it, and is replaced by any other snapshot", () => {
    const state = addHistory(loaded, { messages: [message(6, 6), message(7, 6)], turns: [] });
    expect(ids(applyFrame(state, snapshot([message(10, 10), message(11, 10), message(12, 12)])))).toEqual([
      "m6",
      "m7",
      "m10",
      "m11",
      "m12",
    ]);
    const gap = applyFrame(state, snapshot([message(30, 30)]));
    expect(ids(gap)).toEqual(["m30"]);
    expect(gap.turns.map(({ id }) => id)).toEqual(["t30"]);
  });
});

describe("generated conversations", () => {
  const at = (wire: readonly Wire[], index: number) => snapshotAt(wire, index);
  const scriptAndCut = conversationScript.chain((wire) =>
    fc.record({ wire: fc.constant(wire), cut: fc.nat(wire.length), cut2: fc.nat(wire.length) }),
  );

  it("CLIENT-1: a durable frame applied again is the same state", () => {
    fc.assert(
      fc.property(conversationScript, (wire) => {
        let state = run([empty]);
        for (const frame of wire) {
          state = applyFrame(state, frame);
          if (frame.seq !== undefined) expect(applyFrame(state, frame)).toBe(state);
        }
        const doubled = run(
          wire.flatMap((frame) => [frame, frame]),
          run([empty]),
        );
        expect(doubled).toEqual(state);
      }),
    );
  });

  it("a snapshot anywhere, with the frames after it, equals the whole", () => {
    fc.assert(
      fc.property(scriptAndCut, ({ wire, cut }) => {
        const whole = run(wire, run([empty]));
        const joined = run([at(wire, cut), ...wire.slice(cut)]);
        expect(essence(joined)).toEqual(essence(whole));
      }),
    );
  });

  it("resuming from the last seq after a loss anywhere equals the whole", () => {
    fc.assert(
      fc.property(scriptAndCut, ({ wire, cut, cut2 }) => {
        const [lost, back] = [Math.min(cut, cut2), Math.max(cut, cut2)];
        const whole = run(wire, run([empty]));
        const before = run(wire.slice(0, lost), run([empty]));
        const missed = wire.slice(0, back).filter(({ seq }) => seq !== undefined && seq > (before.seq ?? 0));
        const partials = at(wire, back).data.partials.map(
          ({ messageId, turnId, text }): Frame => ({
            v: 1,
            type: "message.delta",
            turnId,
            messageId,
            time,
            data: { offset: 0, text },
          }),
        );
        const resumed = run([...missed, ...partials, ...wire.slice(back)], before);
        expect(essence(resumed)).toEqual(essence(whole));
      }),
    );
  });
});

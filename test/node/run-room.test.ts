/** A run that begins more at once than its outbox has room for: it begins the rest when there is room again. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { MAX_OUTBOX_BYTES, MAX_OUTBOX_ENVELOPES } from "../../src/agents/base/mailbox/mailbox-limits.ts";
import type { OutboxRoom } from "../../src/agents/coordinator/core/outbox-reservation.ts";
import { newRun, plan } from "../../src/agents/coordinator/core/plan.ts";
import { type RunEnvelope, runEnvelopes } from "../../src/agents/coordinator/core/run-envelopes.ts";
import {
  AGENT_NODE_MS,
  MAX_COMMIT_START_BYTES,
  MAX_COMMIT_STARTS,
  MAX_OPEN_PARTS,
  PART_START_BYTES,
} from "../../src/agents/coordinator/core/run-limits.ts";
import type { RunSignal } from "../../src/agents/coordinator/core/signals.ts";
import type { RunState } from "../../src/agents/coordinator/core/state.ts";
import { isAtRest } from "../../src/agents/coordinator/core/tree-share.ts";
import { workflowSchema } from "../../src/library/workflows/workflow-schema.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { utf8Length } from "../../src/shared/utf8.ts";

const EMPTY: OutboxRoom = { envelopes: MAX_OUTBOX_ENVELOPES, bytes: MAX_OUTBOX_BYTES };
const ADVANCE: RunSignal = { type: "run.advance" };

/** A run with an outbox that a test fills and empties. */
class Sender {
  state: RunState;
  room: OutboxRoom;
  now = 1;
  /** The envelopes of each commit that sent any. */
  readonly sent: RunEnvelope[][] = [];

  constructor(
    count: number,
    input: JsonObject,
    node: object = { agent: "helper" },
    path: string[] = [],
    room = EMPTY,
  ) {
    this.room = room;
    const definition = workflowSchema.parse({
      inputSchema: { type: "object" },
      initialNode: "start",
      nodes: [{ ref: "start" }, { ref: "ask", mode: "delegate", ...node }, { ref: "pass" }],
      transitions: [
        { from: "start", to: "ask", siblingGroup: "g", spawnCount: count },
        { from: "start", to: "pass" },
      ],
    });
    const workflow = { library: "lib", id: "w", version: 1, hash: "", definition, tasks: {}, workflows: {} };
    const ids = { id: "run_1", tenant: "local", projectId: "default", stem: "01ARZ3NDEKTSV4RRFFQ" };
    this.state = newRun({ ...ids, workflow, input, path, startedBy: "ada", request: "", createdAt: 0 });
    this.take({ type: "run.begin" });
  }

  /** Commits a signal. Returns whether it changed the state. Throws the plan's error. */
  take(signal: RunSignal): boolean {
    const change = plan(this.state, [signal], this.now, () => this.room);
    if (change === null) return false;
    const envelopes = runEnvelopes(this.state, change);
    if (envelopes.length > 0) this.sent.push(envelopes);
    this.state = change.state;
    return true;
  }

  tokens(kind: string): number {
    return [...this.state.tokens.values()].filter(({ phase }) => phase.kind === kind).length;
  }
}

const bytesOf = (envelopes: readonly RunEnvelope[]) =>
  envelopes.reduce((sum, envelope) => sum + utf8Length(JSON.stringify(envelope)), 0);

test("RUNOUTBOX-1 many long starts take several commits, each within the bound, and all begin", () => {
  const run = new Sender(400, { text: "ü".repeat(10_000) });
  while (run.take(ADVANCE));
  expect(run.sent.flat()).toHaveLength(400);
  expect(new Set(run.sent.flat().map(({ to }) => to.id)).size).toBe(400);
  expect(run.sent.length).toBeGreaterThan(3);
  for (const envelopes of run.sent) expect(bytesOf(envelopes)).toBeLessThanOrEqual(MAX_COMMIT_START_BYTES);
  expect(run.tokens("working")).toBe(400);
});

test("RUNOUTBOX-1 many short starts take several commits, too", () => {
  const run = new Sender(900, {});
  while (run.take(ADVANCE));
  expect(run.sent.map(({ length }) => length)).toEqual([MAX_COMMIT_STARTS, 900 - MAX_COMMIT_STARTS]);
});

test("RUNOUTBOX-1 starts wait for room, other tokens continue, and results are stored", () => {
  const run = new Sender(100, { text: "x".repeat(100_000) });
  const [first = []] = run.sent;
  expect(run.state.tokens.size).toBe(100);
  expect(run.tokens("working")).toBe(first.length);
  run.room = { envelopes: 0, bytes: EMPTY.bytes };
  expect(run.take(ADVANCE)).toBe(false);
  expect(() => run.take({ type: "run.expire" })).toThrow(
    expect.objectContaining({ code: "QUEUE_OVERFLOW", retriable: true }),
  );
  const ended = { type: "node.ended", token: 1, attempt: 1, outcome: { output: {} } } as const;
  expect(run.take(ended)).toBe(true);
  expect(run.take(ended), "a signal without effect is not a failure").toBe(false);
  expect(run.sent).toHaveLength(1);
  // Room for one start beside the starts of parts.
  run.room = { ...EMPTY, bytes: MAX_OPEN_PARTS * PART_START_BYTES + 110_000 };
  run.take(ADVANCE);
  expect(run.sent.map(({ length }) => length)).toEqual([first.length, 1]);
  run.room = EMPTY;
  while (run.take(ADVANCE));
  expect(run.sent.flat()).toHaveLength(100);
});

test("RUNOUTBOX-1 the time of an agent begins with its start, and waits for room do not count", () => {
  const rooms = fc.array(fc.record({ envelopes: fc.nat(8), after: fc.nat(2 * AGENT_NODE_MS) }), {
    maxLength: 12,
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), rooms, (count, given) => {
      const run = new Sender(count, {}, { agent: "helper" }, [], { envelopes: 0, bytes: EMPTY.bytes });
      expect(run.sent).toEqual([]);
      for (const { envelopes, after } of [...given, { envelopes: count + MAX_OPEN_PARTS, after: 1 }]) {
        run.now += after;
        run.room = { envelopes, bytes: EMPTY.bytes };
        const { length } = run.sent;
        run.take(ADVANCE);
        for (const { body } of run.sent.slice(length).flat())
          expect(body).toMatchObject({ deadline: run.now + AGENT_NODE_MS });
      }
      expect(run.sent.flat()).toHaveLength(count);
    }),
    { numRuns: 50 },
  );
});

test("RUNOUTBOX-1 a start that is longer than an envelope fails its node", () => {
  const run = new Sender(1, {}, { agent: "helper" }, ["a".repeat(800_000)]);
  expect(run.state).toMatchObject({ status: "failed", error: { code: "TOO_LARGE" } });
  expect(run.sent).toEqual([]);
});

test("TREESHARE-4 HOLD-2 the journal distinguishes a wait for a person from a rest, and each commit has an entry", () => {
  const { state } = new Sender(1, {});
  const [token = 0] = state.tokens.keys();
  let run = state;
  const entries = (seq: number, isHeld: boolean, isAtRest: boolean) => {
    const wait = { seq, isHeld, ...(isAtRest && { isAtRest: true as const }) };
    const change = plan(run, [{ type: "run.waits", token, attempt: 1, wait }], 1);
    run = change?.state ?? run;
    return change?.entries.map(({ type }) => type);
  };
  expect(entries(1, false, true)).toEqual(["run.rested"]);
  expect(entries(2, true, true)).toEqual(["work.held"]);
  expect(entries(4, true, true)).toEqual(["run.rested"]);
  expect(entries(3, false, false)).toBeUndefined();
  expect(entries(5, false, false)).toEqual(["work.released", "run.rested"]);
});

test("TREESHARE-4 I2 a run rests only while each of its agents waits for a person", () => {
  const { state } = new Sender(2, {});
  const tokens = [...state.tokens.keys()].filter(
    (token) => state.tokens.get(token)?.phase.kind === "working",
  );
  expect(tokens).toHaveLength(2);
  const after = (run: RunState, token: number, seq: number, isHeld: boolean) =>
    plan(run, [{ type: "run.waits", token, attempt: 1, wait: { seq, isHeld } }], 1)?.state ?? run;
  const [first = 0, second = 0] = tokens;
  const one = after(state, first, 1, true);
  const both = after(one, second, 1, true);
  expect([state, one, both, after(both, first, 2, false)].map(isAtRest)).toEqual([false, false, true, false]);
});

/**
 * Replays of recorded turns (H3): of simulated conversations under faults, of changed recordings, and of a changed core.
 */
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import type { JournalRow } from "../../src/agents/conversation/core/journal-entry.ts";
import { readRecording } from "../../src/agents/conversation/core/replay/recording.ts";
import { MAX_RECORDED_ROWS, recordTurn } from "../../src/agents/conversation/reads/turn-recorder.ts";
import type { TurnRecording } from "../../src/protocol/recording.ts";
import { replayRecording } from "../../src/testing/index.ts";
import { generatePlan } from "../simulation/generate.ts";
import { runPlan } from "../simulation/world.ts";

const SEEDS = 16;
const recordings: TurnRecording[] = [];

beforeAll(async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { outcomes } = await runPlan(generatePlan(seed));
    recordings.push(...outcomes.flatMap(({ replays }) => replays.flatMap(({ recording = [] }) => recording)));
  }
}, 180_000);

const copyOf = (recording: TurnRecording): TurnRecording => JSON.parse(JSON.stringify(recording));

const entriesOf = ({ rows }: TurnRecording) => rows.flatMap(({ entries }) => entries);

/** The first recording with a call that passes, as a copy, with the call. */
function withCall(passes: (operation: ReturnType<typeof callsOf>[number]) => boolean) {
  for (const original of recordings) {
    const recording = copyOf(original);
    const found = callsOf(recording).find(passes);
    const seq = entriesOf(recording).find(
      ({ item, type }) => item === found?.item && /^tool\.(?:completed|failed)$/.test(type),
    )?.seq;
    if (found !== undefined && seq !== undefined) return { recording, operation: found, seq };
  }
  throw new Error("No recording has such a call.");
}

function callsOf(recording: TurnRecording) {
  // SAFETY: the operations of a turn.
  return recording.turn.operations as unknown as {
    item: number;
    effect: string;
    result: Record<string, unknown>;
  }[];
}

/** Entries that planning makes as a consequence of others. */
const MADE = ["message.user", "message.started", "tool.requested", "turn.finalized"];

describe("H3 recordings", () => {
  test("H3 REPLAY-4 turns under faults and beside other turns replay without a divergence", () => {
    const beside = recordings.filter((recording) =>
      readRecording(recording).rows.some(({ before }) => before.active.length > 1),
    );
    expect(beside.length).toBeGreaterThan(SEEDS / 2);
    for (const recording of recordings)
      expect(replayRecording(recording)).toMatchObject({ calls: 0, divergence: null });
  });

  test("H3 REPLAY-2 without an entry that planning makes, the replay diverges there", () => {
    const cases = recordings.flatMap((recording) =>
      recording.rows.flatMap(({ entries }, row) =>
        entries.flatMap(({ type }, index) =>
          MADE.includes(type) && entries.length > 1 ? [{ recording, row, index }] : [],
        ),
      ),
    );
    fc.assert(
      fc.property(fc.constantFrom(...cases), ({ recording, row, index }) => {
        const changed = copyOf(recording);
        const entries = changed.rows[row]?.entries ?? [];
        const [removed] = entries.splice(index, 1);
        const seq = entries[index]?.seq ?? entries.at(-1)?.seq;
        const { divergence } = replayRecording(changed);
        // Another active turn may explain that an entry comes later, so the replay may diverge there.
        const isAlone = readRecording(changed).rows.every(({ before }) => before.active.length < 2);
        expect(divergence?.seq).toBeGreaterThanOrEqual(seq ?? 0);
        if (!isAlone) return;
        expect(divergence?.seq).toBe(seq);
        expect(divergence?.actual?.type).toBe(removed?.type);
      }),
    );
  });

  test("H3 REPLAY-2 a result that failed instead of succeeding is the first divergence", () => {
    const { recording, operation, seq } = withCall(({ result }) => result.success === true);
    const { tool_call_id } = operation.result;
    const error = { code: "EXECUTION_FAILED", message: "No.", retriable: false };
    operation.result = { tool_call_id, success: false, error };
    expect(replayRecording(recording).divergence).toMatchObject({
      seq,
      expected: { type: "tool.completed" },
      actual: { type: "tool.failed" },
    });
  });

  test("H3 REPLAY-3 a refusal that planning words differently today is the divergence of its call", () => {
    const { recording, operation, seq } = withCall(({ result }) =>
      /"code":"(?:APPROVAL_DENIED|INVALID_INPUT)"/.test(JSON.stringify(result)),
    );
    const { error: before } = operation.result;
    operation.result.error = { code: "NOT_FOUND", message: "Unknown tool.", retriable: false };
    expect(replayRecording(recording).divergence).toMatchObject({
      seq,
      expected: { type: "tool.failed", data: { error: { message: "Unknown tool." } } },
      actual: { type: "tool.failed", data: { error: before } },
    });
  });

  test("H3 REPLAY-3 a failure of the model that planning would try again today diverges where the turn fails", () => {
    const failing = recordings
      .map(copyOf)
      .filter(({ turn }) => JSON.stringify(turn.error)?.includes("MODEL_FAILED"));
    expect(failing.length).toBeGreaterThan(0);
    for (const recording of failing) {
      const message = "The model call failed (network): The connection was lost.";
      recording.turn.error = { code: "MODEL_FAILED", message, retriable: true };
      const end = entriesOf(recording).find(({ type }) => type === "turn.failed");
      expect(replayRecording(recording).divergence).toMatchObject({
        seq: end?.seq,
        expected: { type: "turn.failed" },
      });
    }
  });

  test.each(["record", "turn", "before", "after"])(
    "H3 REPLAY-2 a recording without its %s is INVALID_INPUT",
    (name) => {
      const changed = copyOf(recordings[0] as TurnRecording);
      if (name === "before" || name === "after")
        changed.rows[0] = { ...changed.rows[0], [name]: {} } as never;
      else Object.assign(changed, { [name]: {} });
      expect(() => replayRecording(changed)).toThrow(expect.objectContaining({ code: "INVALID_INPUT" }));
    },
  );

  test("H3 REPLAY-2 a lower limit of moves diverges at the first reply beyond it", () => {
    const long = recordings.filter(
      (recording) =>
        entriesOf(recording).filter(
          ({ type, data }) => type === "message.completed" && JSON.stringify(data)?.includes("interim"),
        ).length > 2,
    );
    expect(long.length).toBeGreaterThan(0);
    for (const original of long) {
      const recording = copyOf(original);
      for (const { chain } of readRecording(recording).record.agents)
        Object.assign(chain.persona.definition.tools ?? {}, { constraints: { maxMovesPerTurn: 1 } });
      const [, second] = entriesOf(recording).filter(({ type }) => type === "message.completed");
      const { divergence } = replayRecording(recording);
      expect(divergence?.seq).toBe(second?.seq);
      expect(divergence?.expected?.data).toEqual({ interim: true });
    }
  });

  test("H3 REPLAY-2 another time limit of approvals diverges at the request", () => {
    const original = recordings.find((recording) =>
      entriesOf(recording).some(({ type }) => type === "approval.requested"),
    );
    if (original === undefined) throw new Error("No recording has a request for approval.");
    const recording = copyOf(original);
    recording.options.approvalTimeoutMs = 1_000;
    const { divergence } = replayRecording(recording);
    expect(divergence).toMatchObject({
      expected: { type: "approval.requested" },
      actual: { type: "approval.requested" },
    });
  });

  test("H3 RECORDER-1 a turn with too many commits beside it has no recording", () => {
    const [first] = recordings;
    if (first === undefined) throw new Error("There is no recording.");
    const { record, turn, rows } = readRecording(first);
    const head = rows[0]?.before;
    if (head === undefined) throw new Error("The recording has no commit.");
    let read = 0;
    const journal = {
      headAt: () => head,
      withHeads: (from: number, limit: number) => {
        read += limit;
        const row = (index: number): JournalRow => ({
          seq: from + index,
          at: 0,
          entries: [{ type: "turn.resumed", turn: 0 }],
        });
        return Array.from({ length: limit }, (_, index) => ({ row: row(index), head }));
      },
    };
    expect(() => recordTurn(record, turn, journal, {})).toThrow(
      expect.objectContaining({ code: "TOO_LARGE" }),
    );
    expect(read).toBeLessThan(MAX_RECORDED_ROWS + 100);
  });

  test("H3 REPLAY-1 a file that is no recording is rejected with the place of the defect", () => {
    expect(() => replayRecording({ ...recordings[0], rows: [] })).toThrow(
      expect.objectContaining({ code: "INVALID_INPUT", message: expect.stringContaining("/rows") }),
    );
  });
});

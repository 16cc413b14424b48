/** Streams of a run's journal: their buffers for slow readers, and their end. */

import { describe, expect, test, vi } from "vitest";
import { HIGH_WATER_MARK, STALL_MS } from "../../src/agents/base/streams/entry-stream.ts";
import { MAX_RUN_READERS, RunReaders } from "../../src/agents/coordinator/inbound/run-readers.ts";
import { MAX_CACHED_BYTES, RunEvents } from "../../src/agents/coordinator/reads/run-events.ts";
import type { RunJournalRow } from "../../src/agents/coordinator/store/run-journal.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import { SILENCE_MS } from "../../src/protocol/event-stream.ts";
import type { RunStatus } from "../../src/protocol/workflow-run.ts";
import type { Principal } from "../../src/shared/principal.ts";

const ADA: Principal = { tenant: "t", subject: "ada", roles: [] };

/** A journal that a test writes, and the readers that follow it. */
function world() {
  const clock = new VirtualClock();
  const rows: RunJournalRow[] = [];
  const state: { seq: number; status: RunStatus } = { seq: 0, status: "running" };
  const holding = vi.fn((entry: number) => rows.findLast(({ seq }) => seq <= entry));
  const readers = new RunReaders({ clock, events: new RunEvents({ holding }), runtime: { state } });
  const commit = (entries: number, text = "", status: RunStatus = "running") => {
    const entry = { type: "token.created", data: text } as const;
    rows.push({ seq: state.seq + 1, at: clock.now(), entries: Array.from({ length: entries }, () => entry) });
    Object.assign(state, { seq: state.seq + entries, status });
    readers.wake();
  };
  return { clock, readers, commit, holding };
}

/** Lets the reactions of streams run. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

function opened(stream: ReadableStream<Uint8Array> | null) {
  if (stream === null) throw new Error("There is nothing to read.");
  const reader = stream.getReader();
  let text = "";
  return {
    reader,
    async read(): Promise<number> {
      const { done, value } = await reader.read();
      if (done) return -1;
      text += new TextDecoder().decode(value);
      return value.length;
    },
    get seqs() {
      return [...text.matchAll(/^id: (\d+)$/gm)].map(([, seq]) => Number(seq));
    },
    get text() {
      return text;
    },
  };
}

describe("RUNSTREAM-2 a stalled reader", () => {
  test("makes the stream hold a bounded number of bytes, however long the journal and its entries are", async () => {
    const { readers, commit, holding } = world();
    commit(3, "x".repeat(1_000_000));
    const slow = opened(readers.stream(ADA, 0));
    await settle();
    const asked = holding.mock.calls.length;
    for (let n = 0; n < 200; n++) commit(50, "y".repeat(100));
    await settle();
    expect(holding.mock.calls.length, "there is no read for a reader that is behind").toBe(asked);
    await slow.reader.cancel();
    const other = opened(readers.stream(ADA, 0));
    let largest = 0;
    for (let n = 0; n < 150; n++) largest = Math.max(largest, await other.read());
    expect(largest).toBeLessThanOrEqual(HIGH_WATER_MARK);
  });

  test("gets all entries once and in order when it reads on", async () => {
    const { readers, commit } = world();
    commit(3, "x".repeat(200_000));
    const slow = opened(readers.stream(ADA, 1));
    for (let n = 0; n < 20; n++) commit(7, "y".repeat(5_000));
    commit(1, "", "completed");
    while ((await slow.read()) >= 0);
    expect(slow.seqs).toEqual(Array.from({ length: 143 }, (_, index) => index + 2));
  });

  test("is cut off after a while, and frees its place", async () => {
    const { readers, commit, clock } = world();
    commit(100, "x".repeat(10_000));
    const stalled = opened(readers.stream(ADA, 0));
    await settle();
    for (let n = 0; n < STALL_MS / SILENCE_MS + 2; n++) await clock.advance(SILENCE_MS);
    await expect(stalled.read()).rejects.toThrow("fell behind");
  });
});

test("RUNEVENT-1 readers at the same place share a read", async () => {
  const { readers, commit, holding } = world();
  const all = Array.from({ length: 20 }, () => opened(readers.stream(ADA, 0)));
  commit(5, "text");
  await Promise.all(all.map(({ read }) => read()));
  expect(holding).toHaveBeenCalledTimes(1);
  for (const { seqs } of all) expect(seqs).toEqual([1, 2, 3, 4, 5]);
});

test("RUNEVENT-1 readers at several places of long entries read each entry once", async () => {
  const { readers, commit, holding } = world();
  for (let n = 0; n < 4; n++) commit(1, "x".repeat(300_000));
  const ahead = opened(readers.stream(ADA, 2));
  const behind = opened(readers.stream(ADA, 0));
  commit(1, "", "completed");
  while ((await Promise.all([ahead.read(), behind.read()])).some((length) => length >= 0));
  expect([ahead.seqs, behind.seqs]).toEqual([
    [3, 4, 5],
    [1, 2, 3, 4, 5],
  ]);
  expect(holding).toHaveBeenCalledTimes(5);
});

test("RUNEVENT-1 the cache of events is bounded: the oldest are read again", () => {
  const length = 100_000;
  const entries = [{ type: "token.created", data: "x".repeat(length) } as const];
  const holding = vi.fn((seq: number) => ({ seq, at: 0, entries }));
  const events = new RunEvents({ holding });
  const count = Math.ceil(MAX_CACHED_BYTES / length) + 1;
  for (let seq = 1; seq <= count; seq++) events.event(seq);
  events.event(count);
  expect(holding).toHaveBeenCalledTimes(count);
  events.event(1);
  expect(holding).toHaveBeenCalledTimes(count + 1);
});

test("RUNSTREAM-4 a silent stream gets comments between events", async () => {
  const { readers, commit, clock } = world();
  const quiet = opened(readers.stream(ADA, 0));
  commit(1);
  await quiet.read();
  await clock.advance(SILENCE_MS);
  await quiet.read();
  expect(quiet.text).toMatch(/^id: 1\ndata: \{.*\}\n\n: keep-alive\n\n$/);
});

test("RUNSTREAM-3 a stream ends when its principal expires", async () => {
  const { readers, clock, commit } = world();
  const reader = opened(readers.stream({ ...ADA, expiresAt: clock.now() + 5_000 }, 0));
  commit(1);
  await clock.advance(5_000);
  while ((await reader.read()) >= 0);
  expect(reader.seqs).toEqual([1]);
  expect(reader.text).toContain('"code":"UNAUTHENTICATED"');
});

test("RUNSTREAM-5 the number of readers is limited; a leaving reader makes room", async () => {
  const { readers } = world();
  const all = Array.from({ length: MAX_RUN_READERS }, () => opened(readers.stream(ADA, 0)));
  expect(() => readers.stream(ADA, 0)).toThrow(expect.objectContaining({ code: "RATE_LIMITED" }));
  await all[0]?.reader.cancel();
  expect(readers.stream(ADA, 0)).not.toBeNull();
});

test("RUNSTREAM-1 an ended run ends the stream after its last entry, and has no stream after that", async () => {
  const { readers, commit } = world();
  commit(3);
  commit(1, "", "completed");
  const reader = opened(readers.stream(ADA, 2));
  while ((await reader.read()) >= 0);
  expect(reader.seqs).toEqual([3, 4]);
  expect(readers.stream(ADA, 4)).toBeNull();
});

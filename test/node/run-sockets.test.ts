/** The place of a reader in the journal of a run, and its WebSocket, as a slow reader finds them. */
import { expect, test } from "vitest";
import { createOutflows, stallMs } from "../../src/agents/base/sockets/outflow.ts";
import { NEW_FLOW, SocketReader } from "../../src/agents/base/sockets/socket-reader.ts";
import type { RunState } from "../../src/agents/coordinator/core/state.ts";
import { RunCursor } from "../../src/agents/coordinator/reads/run-cursor.ts";
import { RunEvents } from "../../src/agents/coordinator/reads/run-events.ts";
import type { RunJournalRow } from "../../src/agents/coordinator/store/run-journal.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";

/** A journal that a test writes. */
function journal() {
  const rows: RunJournalRow[] = [];
  const state: Pick<RunState, "seq" | "status"> = { seq: 0, status: "running" };
  const events = new RunEvents({ holding: (entry) => rows.findLast(({ seq }) => seq <= entry) });
  const commit = (entries: number, text = "", isOver = false) => {
    const entry = { type: "token.created", data: text } as const;
    rows.push({ seq: state.seq + 1, at: 0, entries: Array.from({ length: entries }, () => entry) });
    Object.assign(state, { seq: state.seq + entries, status: isOver ? "completed" : "running" });
  };
  const cursor = (from: number) => new RunCursor({ events, runtime: { state } }, from);
  return { commit, cursor };
}

const seqOf = (text: string): number => JSON.parse(text).seq;

test("RUNCURSOR-1 a reader gets each entry after its place once and in order, whatever it refuses and whenever it has room", () => {
  const { commit, cursor } = journal();
  commit(3);
  const place = cursor(1);
  const got: number[] = [];
  const take = ({ text }: { text: string }) => got.push(seqOf(text)) > 0;
  let room = 0;
  place.catchUp(take, () => room);
  expect([got, place.isBehind]).toEqual([[], true]);
  room = 1;
  place.catchUp(
    () => false,
    () => room,
  );
  expect(place.seq, "a refused entry is offered again").toBe(1);
  place.catchUp(
    (text) => take(text) && room-- > 0,
    () => room,
  );
  expect([got, place.isBehind]).toEqual([[2], true]);
  commit(2);
  room = 1_000;
  place.catchUp(take, () => room);
  expect([got, place.isBehind, place.isOver]).toEqual([[2, 3, 4, 5], false, false]);
  commit(1, "", true);
  expect([place.isBehind, place.isOver]).toEqual([true, false]);
  place.catchUp(take, () => room);
  expect([got.at(-1), place.isOver]).toEqual([6, true]);
});

/** A WebSocket over the journal, and all that was sent over it. */
function followed({ acks = true } = {}) {
  const { commit, cursor } = journal();
  const clock = new VirtualClock();
  const sent: string[] = [];
  const closes: number[] = [];
  const { confirmed, unconfirmed } = createOutflows();
  const socket = {
    send: (text: string) => void sent.push(text),
    close: (code: number) => void closes.push(code),
  };
  const ports = { clock, outflow: acks ? confirmed : unconfirmed, keep: () => undefined };
  const reader = new SocketReader(socket, cursor(0), ports, { ...NEW_FLOW, acks }, false);
  const marks = () => sent.flatMap((text) => JSON.parse(text).data?.mark ?? []);
  return { clock, commit, reader, sent, closes, marks };
}

test("RUNSOCKET-2 a run of any length waits in its journal for a stalled reader, which is cut off", async () => {
  const { clock, commit, reader, sent, closes } = followed();
  for (let n = 0; n < 100; n++) {
    commit(10, "x".repeat(1_000));
    reader.publish([]);
  }
  const length = sent.join("").length;
  expect(length).toBeGreaterThan(200 * 1024);
  expect(length).toBeLessThan(260 * 1024);
  await clock.advance(stallMs(length) + 1_000);
  expect(closes).toEqual([1013]);
});

test.each([true, false])(
  "READER-5 a connection is closed with 1000 after the last frame, and once: acks %s",
  (acks) => {
    const { commit, reader, sent, closes, marks } = followed({ acks });
    commit(1_000, "x".repeat(1_000), true);
    reader.advance();
    for (let mark = marks().at(-1); closes.length === 0 && mark !== undefined; mark = marks().at(-1))
      reader.acknowledge(mark);
    expect(closes).toEqual([1000]);
    const seqs = sent.flatMap((text) => seqOf(text) ?? []);
    expect(seqs).toEqual(Array.from({ length: 1_000 }, (_, index) => index + 1));
    reader.publish([]);
    expect(closes).toEqual([1000]);
  },
);

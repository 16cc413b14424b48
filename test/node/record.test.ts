/** The projections of the journals of simulated conversations. */
import fc from "fast-check";
import { ulid } from "ulid";
import { beforeAll, describe, expect, test } from "vitest";
import type { JournalEntry, JournalRow } from "../../src/agents/conversation/core/journal-entry.ts";
import { isOpen } from "../../src/agents/conversation/core/operation.ts";
import { piecesOf } from "../../src/agents/conversation/core/record/canonical.ts";
import { causedEntries, chainFrom } from "../../src/agents/conversation/core/record/causes.ts";
import { isMessage, newestPlaces } from "../../src/agents/conversation/core/record/context.ts";
import { foldEntries, NEW_FOLD, type Numbered } from "../../src/agents/conversation/core/record/fold.ts";
import { readRecording } from "../../src/agents/conversation/core/replay/recording.ts";
import { replayRecording } from "../../src/agents/conversation/core/replay/replay.ts";
import { NEW_STATE } from "../../src/agents/conversation/core/state.ts";
import { ConversationRecord } from "../../src/agents/conversation/reads/conversation-record.ts";
import { readCauses, readIncidents } from "../../src/agents/conversation/reads/record-lists.ts";
import { conversationView } from "../../src/agents/conversation/reads/views.ts";
import { CREATE_JOURNAL, Journal } from "../../src/agents/conversation/store/journal.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { parseItemId, stemOf, turnId } from "../../src/protocol/ids.ts";
import { type CanonicalEvent, PROJECTIONS } from "../../src/protocol/projection-schemas.ts";
import { isJsonObject, type JsonObject } from "../../src/shared/json.ts";
import { generatePlan } from "../simulation/generate.ts";
import type { Outcome } from "../simulation/history.ts";
import { tryPlan } from "../simulation/simulate.ts";

const SEEDS = 12;

let outcomes: Outcome[];

beforeAll(async () => {
  const trials = [];
  for (let seed = 1; seed <= SEEDS; seed++) trials.push(await tryPlan(generatePlan(seed)));
  outcomes = trials.flatMap(({ history }) => history.outcomes);
}, 120_000);

function numbered(rows: readonly JournalRow[]): Numbered[] {
  return rows.flatMap(({ seq, at, entries }) =>
    entries.map((entry, index) => ({ entry, seq: seq + index, at })),
  );
}

/** Returns a store of these rows. */
function storeOf(rows: readonly JournalRow[], { contents }: Outcome) {
  const database = new NodeSqlDatabase(":memory:");
  database.run(CREATE_JOURNAL);
  const journal = new Journal(database);
  for (const row of rows) journal.append(row, { ...NEW_STATE, active: [] });
  return { journal, turn: (n: number) => contents.get(n) ?? null };
}

/** Returns a reader of these rows. */
function recordOf(rows: readonly JournalRow[], outcome: Outcome, maxFolded?: number): ConversationRecord {
  return new ConversationRecord(storeOf(rows, outcome), maxFolded);
}

const single = (rows: readonly JournalRow[]): JournalRow[] =>
  numbered(rows).map(({ entry, seq, at }) => ({ seq, at, entries: [entry] }));

/** Returns a projection, of a list with all its pages. */
function whole(record: ConversationRecord, { stored }: Outcome, name: string, limit: number): string {
  const pages = [];
  for (let cursor: string | undefined = ""; cursor !== undefined; ) {
    const answer = record.projection(stored, name, { limit, ...(cursor === "" ? {} : { cursor }) });
    cursor = "nextCursor" in answer ? answer.nextCursor : undefined;
    pages.push(answer);
  }
  return JSON.stringify(
    pages.flatMap((page): unknown[] =>
      "entries" in page ? page.entries : "events" in page ? page.events : [page],
    ),
  );
}

/** Returns the numbers of the turns that newer turns replaced. */
function replacedTurns(entries: readonly Numbered[]): Set<number> {
  const left = new Set<number>();
  for (const { entry } of entries) {
    const { regenerates, edits } = Object(entry.data) as { regenerates?: string; edits?: string };
    const first = parseItemId(regenerates ?? edits ?? "")?.n;
    if (entry.type !== "turn.started" || first === undefined) continue;
    for (let turn = first; turn < (entry.turn ?? 0); turn++) left.add(turn);
  }
  return left;
}

/** Returns the canonical timeline of an outcome. */
function canonical(outcome: Outcome): CanonicalEvent[] {
  return JSON.parse(whole(recordOf(outcome.rows, outcome), outcome, "canonical_timeline", 200));
}

/** The canonical type of an entry, by the four rules and the fallback. */
function ruleFor({ type, data }: JournalEntry): string {
  if (type === "message.user") return "conv.in.message.received";
  const isInterim = JSON.stringify(data ?? {}).includes('"interim":true');
  if (type === "message.completed" && !isInterim) return "conv.out.assistant.completed";
  return type.startsWith("tool.") ? "conv.out.tool.status" : "conv.audit.policy.decision_recorded";
}

describe("the projections of simulated conversations", () => {
  test("E17 PROJ-1 a fold and the entries after it equal the fold of all entries", () => {
    for (const { rows } of outcomes) {
      const entries = numbered(rows);
      const all = foldEntries(NEW_FOLD, entries);
      expect(all.seq).toBe(entries.length);
      for (const cut of [1, 3, Math.floor(entries.length / 2), entries.length - 1]) {
        const snapshot = JSON.parse(JSON.stringify(foldEntries(NEW_FOLD, entries.slice(0, cut))));
        expect(foldEntries(snapshot, entries.slice(cut))).toEqual(all);
      }
    }
  });

  test("E17 PROJ-1 PROJ-4 the distribution of entries over rows and the size of pages do not change a byte", () => {
    for (const outcome of outcomes) {
      const { rows } = outcome;
      for (const name of PROJECTIONS) {
        const read = whole(recordOf(rows, outcome), outcome, name, 200);
        expect(whole(recordOf(rows, outcome), outcome, name, 200)).toBe(read);
        expect(whole(recordOf(single(rows), outcome), outcome, name, 7)).toBe(read);
      }
    }
  });

  test("E17 diagnostics equal the state, and pending calls are the calls without an end after each entry", () => {
    for (const outcome of outcomes) {
      const { stored, rows } = outcome;
      const { seq, queued = 0, gate, status } = { seq: stored.seq, ...conversationView(stored) };
      const open = [...stored.active.values()].flatMap(({ operations }) => operations.filter(isOpen));
      expect(recordOf(rows, outcome).projection(stored, "diagnostics")).toMatchObject({
        seq,
        status: gate,
        conversationStatus: status,
        queueSize: queued,
        turnCount: stored.turns,
        activeTurnCount: stored.active.size,
        pendingToolCallCount: open.length,
        eventCount: numbered(rows).length,
      });
      const calls = new Set<string>();
      const entries = numbered(rows);
      entries.forEach(({ entry: { type, turn, item } }, index) => {
        if (type === "tool.requested") calls.add(`${turn} ${item}`);
        if (/^tool\.(?:completed|failed|cancelled)$/.test(type)) calls.delete(`${turn} ${item}`);
        if (!/^t(?:ool|urn)\./.test(type)) return;
        const { pending, seq: newest } = foldEntries(NEW_FOLD, entries.slice(0, index + 1));
        expect([newest, pending.map((place) => `${place.turn} ${place.item}`)]).toEqual([
          index + 1,
          [...calls],
        ]);
      });
    }
  });

  test("E18 E19 CANON-1 CANON-2 the canonical timeline maps each entry once, and its pieces are the text of the message", () => {
    for (const outcome of outcomes) {
      const { rows, contents } = outcome;
      const entries = numbered(rows);
      const events = canonical(outcome);
      const isDelta = ({ type }: CanonicalEvent) => type === "conv.out.assistant.delta";
      expect(events.filter((event) => !isDelta(event)).map(({ id, type }) => [id, type])).toEqual(
        entries.map(({ entry, seq }) => [`${seq}`, ruleFor(entry)]),
      );
      for (const { entry, seq } of entries) {
        const pieces = events.filter((event) => isDelta(event) && event.id.startsWith(`${seq}.`));
        const reply = contents.get(entry.turn ?? 0)?.replies.find(({ item }) => item === entry.item);
        const text = entry.type === "message.completed" ? (reply?.text ?? "") : "";
        expect(pieces.map(({ data }) => data.delta).join("")).toBe(text);
      }
    }
  });

  test("E19 CANON-3 canonical events have the required keys, the subject and the major version", () => {
    const required: Record<string, string[]> = {
      in: ["message_id", "ingress"],
      out: ["output_id", "channel"],
      audit: ["audit_id", "category"],
    };
    for (const outcome of outcomes) {
      const { projectId, id: conversation } = outcome.stored.record;
      const events = canonical(outcome);
      expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
      for (const { type, data, subject, extensions } of events) {
        for (const key of required[type.split(".")[1] ?? ""] ?? expect.fail(type))
          expect(Object.keys(data)).toContain(key);
        expect(subject).toBe(`project/${projectId}/conversation/${conversation}`);
        expect(extensions.contract_major).toBe(1);
      }
    }
  });

  test("E18 PROJ-6 the canonical context is the end of the canonical timeline without replaced turns, of 40 messages at most", () => {
    for (const outcome of outcomes) {
      const entries = numbered(outcome.rows);
      const left = replacedTurns(entries);
      const leaves = new Set(
        entries.flatMap(({ entry, seq }) => (left.has(entry.turn ?? 0) ? [`${seq}`] : [])),
      );
      const shown = canonical(outcome).filter(
        ({ id, type }) => /^conv\.(?:in|out\.assistant\.completed|out\.tool)/.test(type) && !leaves.has(id),
      );
      expect(
        recordOf(outcome.rows, outcome).projection(outcome.stored, "canonical_llm_context"),
      ).toMatchObject({
        messages: shown.slice(-40).map(({ id, data }) => ({ seq: Number(id), data })),
      });
    }
  });

  test("E17 PROJ-6 replaced turns leave the context, and earlier messages take their places", () => {
    fc.assert(
      fc.property(
        fc.array(fc.option(fc.nat(), { freq: 2 }), { minLength: 1, maxLength: 120 }),
        (replaces) => {
          const stem = stemOf(ulid());
          const entries = replaces.flatMap((choice, index): JournalEntry[] => {
            const turn = index + 1;
            const edits = choice === null || index === 0 ? null : turnId({ n: 1 + (choice % index), stem });
            return [
              { type: "turn.started", turn, ...(edits !== null && { data: { edits } }) },
              { type: "message.user", turn, item: 0 },
              { type: "turn.completed", turn },
            ];
          });
          const all = numbered([{ seq: 1, at: 0, entries }]);
          const left = replacedTurns(all);
          const turns = replaces.map((_, index) => index + 1).filter((turn) => !left.has(turn));
          const fold = foldEntries(NEW_FOLD, all);
          expect(newestPlaces(all.toReversed(), fold, isMessage).map(({ turn }) => turn)).toEqual(
            turns.slice(-40),
          );
        },
      ),
    );
  });

  test.each(["x".repeat(281), "🙂".repeat(300), "", "short"])(
    "CANON-2 pieces of the text %j are the text",
    (text) => {
      const pieces = piecesOf(text);
      expect(pieces.join("")).toBe(text);
      expect(pieces.every(({ length }) => length > 0 && length <= 280)).toBe(true);
      expect(pieces.every((piece) => piece.isWellFormed())).toBe(true);
    },
  );

  test("PROJ-5 a read of a long journal continues where the last read ended", () => {
    const [outcome = expect.fail("no outcome")] = outcomes;
    const { rows, stored } = outcome;
    const record = recordOf(rows, outcome, 4);
    const reads = Math.ceil(stored.seq / 4);
    for (let read = 1; read < reads; read++)
      expect(() => record.projection(stored, "diagnostics")).toThrow(`${read * 4} of ${stored.seq} entries`);
    expect(record.projection(stored, "diagnostics")).toEqual(
      recordOf(rows, outcome).projection(stored, "diagnostics"),
    );
  });
});

/** Returns the entries of each turn of an outcome. */
function turnsOf({ rows }: Outcome): Numbered[][] {
  const ofTurns = numbered(rows).filter(({ entry }) => entry.turn !== undefined);
  return [...Map.groupBy(ofTurns, ({ entry }) => entry.turn).values()];
}

describe("the causes in simulated conversations", () => {
  test("E21 LINK-1 a call follows from the message that has it, and its result from the call", () => {
    const entries = numbered([
      {
        ...{ seq: 1, at: 0 },
        entries: [
          { type: "turn.started", turn: 1 },
          { type: "message.user", turn: 1, item: 0 },
          { type: "message.started", turn: 1, item: 1 },
          { type: "message.completed", turn: 1, item: 1, data: { interim: true } },
          { type: "tool.requested", turn: 1, item: 2 },
          { type: "tool.requested", turn: 1, item: 3 },
          { type: "tool.completed", turn: 1, item: 3 },
          { type: "tool.completed", turn: 1, item: 2 },
          { type: "message.started", turn: 1, item: 4 },
          { type: "message.completed", turn: 1, item: 4 },
          { type: "turn.completed", turn: 1 },
          { type: "entry.erased", turn: 1, item: 2 },
          { type: "turn.finalized", turn: 1 },
        ],
      },
    ]);
    const causes = causedEntries(entries).map(({ cause }) => cause);
    expect(causes).toEqual([undefined, 1, 2, 3, 4, 4, 6, 5, 8, 9, 10, undefined, 11]);
    const chain = (start: number, direction: "backward" | "forward") =>
      chainFrom(entries, start, direction).map(({ seq }) => seq);
    expect(chain(11, "backward")).toEqual([11, 10, 9, 8, 5, 4, 3, 2, 1]);
    expect(chain(6, "forward")).toEqual([6, 7]);
    expect(chain(5, "forward")).toEqual([5, 8, 9, 10, 11, 13]);
  });

  test("E21 LINK-1 LINK-2 LINK-3 are earlier entries, lead to the first entry, and both directions agree", () => {
    for (const entries of outcomes.flatMap(turnsOf)) {
      const numbers = new Set(entries.map(({ seq }) => seq));
      const [first] = numbers;
      const forward = new Map(
        entries.map(({ seq }) => [seq, chainFrom(entries, seq, "forward").map((found) => found.seq)]),
      );
      for (const { entry, seq, cause } of causedEntries(entries)) {
        if (entry.type === "entry.erased" || seq === first) expect(cause).toBeUndefined();
        else expect([numbers.has(cause ?? 0), (cause ?? seq) < seq]).toEqual([true, true]);
        const backward = chainFrom(entries, seq, "backward").map((found) => found.seq);
        expect(backward[0]).toBe(seq);
        expect(backward).toEqual([...backward].sort((a, b) => b - a));
        expect(backward.at(-1)).toBe(entry.type === "entry.erased" ? seq : first);
        for (const [from, followers] of forward)
          expect(followers.includes(seq), `${from} leads to ${seq}`).toBe(backward.includes(from));
      }
    }
  });

  test("E21 RECORDLIST-1 LINK-4 the chain of an entry is its chain in its turn, in rows of any size, or partial", () => {
    for (const outcome of outcomes) {
      const { rows, stored } = outcome;
      for (const entries of turnsOf(outcome)) {
        const { seq } = entries[Math.floor(entries.length / 2)] ?? expect.fail("no entry");
        const causes = new Map(causedEntries(entries).map((caused) => [caused.seq, caused.cause]));
        for (const direction of ["backward", "forward"] as const) {
          const options = { direction, limit: 200 };
          const chain = readCauses(stored, storeOf(rows, outcome), seq, options);
          expect(chain.entries.map((found) => found.seq)).toEqual(
            chainFrom(entries, seq, direction).map((found) => found.seq),
          );
          expect(chain.partial).toBeUndefined();
          expect(readCauses(stored, storeOf(single(rows), outcome), seq, options)).toEqual(chain);
          const near = readCauses(stored, storeOf(rows, outcome), seq, options, 1);
          // LINK-4: a known cause is the cause that all entries of the turn give.
          for (const { seq: of, cause } of near.entries)
            if (cause !== undefined) expect([of, cause]).toEqual([of, causes.get(of)]);
          expect(near.entries.every((found) => Math.abs(found.seq - seq) <= 1)).toBe(true);
          if (near.entries.length < chain.entries.length) expect(near.partial).toBe(true);
        }
      }
    }
  });
});

describe("the incidents of simulated conversations", () => {
  /** Returns all incidents, page by page. */
  function incidentsOf(outcome: Outcome, rows: readonly JournalRow[], limit: number, maxExamined?: number) {
    const store = storeOf(rows, outcome);
    const incidents = [];
    for (let cursor: string | undefined = ""; cursor !== undefined; ) {
      const page = { limit, ...(cursor === "" ? {} : { cursor }) };
      const { items, nextCursor } = readIncidents(outcome.stored, store, page, maxExamined);
      incidents.push(...items);
      cursor = nextCursor;
    }
    return incidents;
  }

  test("E29 INCIDENT-1 are the failures and stops of the journal, and no entry of normal work", () => {
    for (const outcome of outcomes) {
      const found = new Set(incidentsOf(outcome, outcome.rows, 200).map(({ seq }) => seq));
      for (const { entry, seq } of numbered(outcome.rows)) {
        const { type } = entry;
        if (/\.(?:failed|cancelled|exceeded|overflow|refused|interrupted|late)$/.test(type))
          expect([type, found.has(seq)]).toEqual([type, true]);
        if (/\.(?:user|started|completed|requested|queued|deferred|waiting|joined|compacted)$/.test(type))
          expect([type, found.has(seq)]).toEqual([type, false]);
      }
    }
    expect(outcomes.some((outcome) => incidentsOf(outcome, outcome.rows, 200).length > 3)).toBe(true);
  });

  test("E29 RECORDLIST-2 are equal with pages and rows of any size, and each page examines a bounded number of entries", () => {
    for (const outcome of outcomes) {
      const all = incidentsOf(outcome, outcome.rows, 200);
      expect(incidentsOf(outcome, single(outcome.rows), 3, 4)).toEqual(all);
      const { items, nextCursor } = readIncidents(outcome.stored, storeOf(outcome.rows, outcome), {}, 4);
      expect(items.every(({ seq }) => seq <= 4)).toBe(true);
      expect(nextCursor).toBe("4");
    }
  });
});

test("H3 REPLAY-2 a budget that was left is checked in turns that were alone", () => {
  const recordings = outcomes.flatMap(({ replays }) => replays.flatMap(({ recording = [] }) => recording));
  const changed = recordings.flatMap((recording) => {
    const copy = structuredClone(recording);
    const entries = copy.rows.flatMap((row) => row.entries);
    const left = entries.map(({ data }) => (data as JsonObject | undefined)?.budgetLeft).find(isJsonObject);
    const isAlone = readRecording(recording).rows.every(({ before }) => before.active.length < 2);
    if (left === undefined || !isAlone) return [];
    for (const limit of Object.keys(left)) left[limit] = Number(left[limit]) + 7;
    return [copy];
  });
  expect(changed.length).toBeGreaterThan(0);
  for (const recording of changed) expect(replayRecording(recording).divergence).not.toBeNull();
});

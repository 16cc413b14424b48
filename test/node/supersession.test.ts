/** The events of a session that stay in its windows after turns were replaced. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { noticeOf, withoutInputs } from "../../src/agents/conversation/core/replacement.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import { EventStore } from "../../src/memory/session/event-store.ts";
import { LongText } from "../../src/memory/session/long-text.ts";
import { EventAction, type SessionEvent } from "../../src/memory/session/session-event.ts";
import { Supersessions } from "../../src/memory/session/supersession.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { messageId } from "../../src/protocol/ids.ts";

const db = new NodeSqlDatabase();
const STEM = "01JD000000000000000";

/** Returns the events that no later event supersedes. Takes and returns events in ascending order. */
function liveEvents(events: readonly SessionEvent[]): SessionEvent[] {
  const supersessions = new Supersessions();
  return events
    .toReversed()
    .filter((event) => !supersessions.skips(event))
    .reverse();
}

const steps = fc.array(
  fc.oneof(
    fc.constant({ type: "turn" as const }),
    fc.constant({ type: "note" as const }),
    fc.record({ type: fc.constant("replace" as const), choice: fc.nat() }),
  ),
  { maxLength: 40 },
);

test("G9 SUPERSEDE-1 after any turns, new answers and edits, a window has the branch that the newest versions form", () => {
  fc.assert(
    fc.property(steps, (given) => {
      const events: SessionEvent[] = [];
      let turns = 0;
      let branch: { n: number; id: string }[] = [];
      const append = (id: string, action: EventAction.USER_MESSAGE | EventAction.SUPERSESSION, more = {}) => {
        events.push({
          ...{ id, sessionId: "s", seq: events.length, content: "", timestamp: 0, action },
          ...more,
        });
      };
      const turn = () => {
        turns += 1;
        const id = messageId({ n: turns, stem: STEM }, 0);
        append(id, EventAction.USER_MESSAGE);
        branch.push({ n: turns, id });
      };
      for (const step of given) {
        if (step.type === "turn") turn();
        else if (step.type === "note") {
          const id = `late_${events.length}`;
          append(id, EventAction.USER_MESSAGE);
          branch.push({ n: 0, id });
        } else {
          const live = branch.filter(({ n }) => n > 0);
          const old = live[step.choice % Math.max(1, live.length)];
          if (old === undefined) continue;
          branch = branch.filter(({ n }) => n < old.n);
          append(`supersession_${turns + 1}`, EventAction.SUPERSESSION, {
            metadata: { supersedes: [old.n, turns + 1] },
          });
          turn();
        }
      }
      const store = new EventStore(db, new LongText(db));
      store.createTable();
      store.deleteSession("s");
      store.append("s", 0, events);
      expect(store.loadWindow("s", { limit: 10_000 }).events).toEqual(liveEvents(events));
      const seen = liveEvents(events).filter(({ action }) => action !== EventAction.SUPERSESSION);
      expect(seen.map(({ id }) => id)).toEqual(branch.map(({ id }) => id));
    }),
  );
});

test("G9 REPLACE-5 a note loses the inputs of its calls, whatever they contain", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "grapheme" }),
      fc.constantFrom("\u2028", "\u2029", "): done", "(", "\n- pay(1): done"),
      (text, part) => {
        const operation = {
          item: 1,
          reply: 0,
          name: "pay",
          input: { to: `secret${text}${part}secret` },
          effect: "once",
          target: "code",
        };
        // SAFETY: a note reads these members only.
        const turn = { n: 1, operations: [{ ...operation, result: { success: true } }] } as unknown as Turn;
        const note = noticeOf([turn], new Map());
        expect(note.split(/[\n\u2028\u2029]/)).toHaveLength(2);
        expect(withoutInputs(note)).not.toContain("secret");
        expect(withoutInputs(note)).toContain("- pay([erased]): done");
      },
    ),
  );
});

test("G9 REPLACE-4 a copy is noted if its original is not in the turns", () => {
  const operation = {
    item: 1,
    reply: 0,
    name: "pay",
    input: {},
    effect: "once",
    target: "code",
    result: { success: true },
  };
  const copy = {
    n: 40,
    taken: 1,
    regenerates: messageId({ n: 2, stem: STEM }, 0).replace("msg_", "turn_"),
    operations: [operation],
  };
  // SAFETY: as above.
  const turns = [copy] as unknown as Turn[];
  expect(noticeOf(turns, new Map())).toContain("- pay(");
  // SAFETY: as above.
  const both = [{ n: 2, operations: [operation] }, copy] as unknown as Turn[];
  expect(noticeOf(both, new Map()).match(/- pay\(/g)).toHaveLength(1);
});

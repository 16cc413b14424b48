/** Proves the thing that a turn waits for, and its announcement. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Operation } from "../../src/agents/conversation/core/operation.ts";
import { announceWait } from "../../src/agents/conversation/core/planning/results.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import {
  blocksQueue,
  onlyWaits,
  outlivesInterruption,
  waitForResults,
  waitOf,
  works,
} from "../../src/agents/conversation/core/waits.ts";

const CODE = { target: "code", status: "pending", mode: "sync" } as const;
const LOST = { ...CODE, status: "interrupted" } as const;
const HANDLE = { ...CODE, status: "deferred" } as const;
const CLIENT = { ...CODE, target: "client" } as const;
const PERSON = { ...CODE, status: "awaiting_approval" } as const;
const AGENT = { ...CODE, target: "agent", status: "dispatched" } as const;
const ASKING = { ...AGENT, agent: { id: "a", mode: "delegate", asks: [{}] } } as unknown as typeof AGENT;
const KINDS = [CODE, LOST, AGENT, ASKING, PERSON, CLIENT, HANDLE] as const;

/** An active turn that has the members that matter here. */
function turnOf(members: Partial<Turn>, operations: readonly Partial<Operation>[] = []): Turn {
  // SAFETY: the rules read no other member.
  return { n: 1, status: "active", call: null, ...members, operations } as Turn;
}

const CALL = { item: 1, attempt: 1, notBefore: 0, final: false };
const DUE = { ...CODE, mode: "async", result: { tool_call_id: "c", success: true, result: 1 } } as const;

describe("WAIT-1 a turn waits for one thing at a time", () => {
  test.each([
    ["queue", turnOf({ queued: true })],
    ["model", turnOf({ call: CALL }, [{ ...CODE, mode: "async" }])],
    ["tools", turnOf({}, [CODE])],
    ["tools", turnOf({}, [LOST])],
    ["tools", turnOf({}, [HANDLE, CLIENT, CODE])],
    ["agents", turnOf({}, [HANDLE, PERSON, CLIENT, AGENT])],
    ["person", turnOf({ waiting: 3 }, [HANDLE, CLIENT, PERSON])],
    ["person", turnOf({ waiting: 3 }, [{ ...PERSON, target: "agent" }])],
    ["person", turnOf({ waiting: 3 }, [HANDLE, ASKING])],
    ["agents", turnOf({}, [ASKING, AGENT])],
    ["client", turnOf({}, [HANDLE, CLIENT])],
    ["handle", turnOf({ waiting: 3 }, [HANDLE])],
    ["cycle", turnOf({ waiting: 3 }, [DUE])],
    [
      "background",
      turnOf({ waiting: 3 }, [
        { ...CLIENT, mode: "async" },
        { ...DUE, delivered: 1 },
      ]),
    ],
  ] as const)("%s", (wait, turn) => {
    expect(waitOf(turn)).toBe(wait);
    expect(works(turn), "works").toBe(["model", "tools", "agents"].includes(wait));
    expect(blocksQueue(turn), "holds the queue").toBe(
      ["queue", "model", "tools", "agents", "cycle"].includes(wait),
    );
    expect(onlyWaits(turn), "only waits").toBe(["person", "client", "handle", "background"].includes(wait));
    expect(outlivesInterruption(turn)).toBe(["handle", "cycle", "background"].includes(wait));
  });
});

test("WAIT-2 a turn announces a wait once, when it begins", () => {
  const open = fc.array(fc.constantFrom(...KINDS), { maxLength: 4 });
  fc.assert(
    fc.property(open, open, (before, left) => {
      const types = announceWait(1, before, left).map(({ type }) => type);
      const wait = waitForResults(left);
      const isNew = wait !== waitForResults(before);
      if (wait === "client" && isNew) expect(types).toEqual(["WAIT_FOR_CLIENT"]);
      else if (wait === "person" && isNew) expect(types).toEqual(["WAIT_FOR_PERSON"]);
      else if (wait === "handle" && isNew) expect(types).toEqual(["MARK_WAITING"]);
      else expect(types).toEqual([]);
    }),
  );
  expect(announceWait(1, [CODE, CLIENT], [HANDLE, CLIENT]), "the code gave out a handle").toEqual([
    { type: "WAIT_FOR_CLIENT", turn: 1 },
  ]);
  expect(announceWait(1, [HANDLE, CLIENT], [HANDLE]), "the client answered").toEqual([
    { type: "MARK_WAITING", turn: 1, isIdle: true },
  ]);
});

/** Turns that kill their actor: which turns are counted, pause, run alone, or fail. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  MAX_ACTIVE_TURNS,
  MAX_RECOVERIES,
  MAX_RESUME_PAUSE_MS,
} from "../../src/agents/conversation/core/conversation-limits.ts";
import { effectsOfTurns, type TurnEffect } from "../../src/agents/conversation/core/effects.ts";
import { crashesOf, delayedTurns, resumePause } from "../../src/agents/conversation/core/isolation.ts";
import { plan } from "../../src/agents/conversation/core/planning/plan.ts";
import { reduce } from "../../src/agents/conversation/core/reducer.ts";
import type { EffectSignal, Signal } from "../../src/agents/conversation/core/signals.ts";
import { type ConversationState, NEW_STATE } from "../../src/agents/conversation/core/state.ts";
import { beginTransition } from "../../src/agents/conversation/core/transition.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { PIN, PLAIN_CHAIN, recordOf } from "../support/records.ts";

const CHAIN = {
  ...PLAIN_CHAIN,
  tools: [
    {
      ...PIN,
      library: "lib",
      id: "safe",
      definition: {
        name: "safe",
        description: "Safe.",
        effect: "idempotent" as const,
        timeoutMs: 600_000,
        inputSchema: {},
      },
    },
  ],
};

/** One turn of a world. Times are milliseconds. */
interface Part {
  /** When its message arrives. */
  at: number;
  /** The milliseconds that its effects take: a model call, then a tool and a model call for each further pair. */
  work: number[];
  /** Kills the actor this long after the beginning of its first effect, in every life. */
  kills?: number;
}

/** A conversation with an actor that dies and wakes. The platform wakes it `RESTART_MS` after a death. */
class World {
  state: ConversationState = {
    ...NEW_STATE,
    record: recordOf(undefined, { agents: [{ id: "tester", chain: CHAIN }] }),
    seq: 0,
    active: new Map(),
    stored: new Map(),
  };
  readonly ended = new Map<number, Turn>();
  readonly partOf = new Map<number, Part>();
  now = 0;
  deaths = 0;
  /** The effects that run, by key. */
  readonly #running = new Map<string, { due: number; effect: TurnEffect }>();

  /** Runs until every turn has ended. `deploys` are times at which the actor is killed from outside. */
  run(parts: readonly Part[], deploys: readonly number[] = []): void {
    const arrivals = [...parts].sort((one, other) => one.at - other.at);
    const kills = [...deploys].sort((one, other) => one - other);
    for (let events = 0; arrivals.length > 0 || this.state.active.size > 0; events++) {
      if (events > 20_000) throw new Error("It never ends.");
      const due = [...this.#running].sort(([, one], [, other]) => one.due - other.due)[0];
      const [arrival = Number.POSITIVE_INFINITY, kill = Number.POSITIVE_INFINITY] = [
        arrivals[0]?.at,
        kills[0],
      ];
      const next = Math.min(due?.[1].due ?? Number.POSITIVE_INFINITY, arrival, kill);
      if (next === Number.POSITIVE_INFINITY) throw new Error("Nothing is due.");
      this.now = Math.max(this.now, next);
      if (next === kill) {
        kills.shift();
        this.#die();
      } else if (next === arrival) {
        const part = arrivals.shift();
        this.send({
          type: "conversation.user.message",
          caller: { type: "user", userId: "ada" },
          data: { content: "go" },
        });
        if (part !== undefined) this.partOf.set(this.state.turns, part);
        this.#start();
      } else if (due !== undefined) this.#end(...due);
    }
  }

  send(signal: Signal): void {
    const input = { now: this.now, stem: "01ARZ3NDEKTSV4RRFFQ", gate: allowAll };
    const transition = reduce(beginTransition(this.state), plan(this.state, signal, input), this.now);
    this.state = { ...transition.state, seq: this.state.seq + transition.entries.length };
    for (const turn of transition.touched.values())
      if (turn.status !== "active") this.ended.set(turn.n, turn);
  }

  #start(): void {
    const called = effectsOfTurns(this.state);
    for (const effect of called) {
      if (this.#running.has(effect.key)) continue;
      const { work, kills } = this.#part(effect);
      if (effect.kind === "assembly" || effect.kind === "join")
        expect.fail("no agent has a hook, and none joins");
      const notBefore = effect.kind === "model" ? effect.call.notBefore : effect.operation.notBefore;
      const begin = Math.max(this.now, notBefore ?? 0);
      this.#running.set(effect.key, { due: begin + (kills ?? work[stepOf(effect)] ?? 0), effect });
    }
    const keys = new Set(called.map(({ key }) => key));
    for (const key of this.#running.keys())
      expect(keys.has(key), "ISOLATE-4 running effects stay in the state").toBe(true);
  }

  #end(key: string, { effect }: { effect: TurnEffect }): void {
    if (this.#part(effect).kills !== undefined) {
      this.#die();
      return;
    }
    this.#running.delete(key);
    this.send(outcomeOf(effect, this.#part(effect), this.now));
    this.#start();
  }

  #die(): void {
    this.deaths += 1;
    this.#running.clear();
    this.now += RESTART_MS;
    if (this.state.active.size > 0) this.send({ type: "conversation.cmd.recover" });
    this.#start();
  }

  #part({ turn }: TurnEffect): Part {
    const part = this.partOf.get(turn.n);
    if (part === undefined) throw new Error("An unknown turn.");
    return part;
  }
}

const RESTART_MS = 50;

/** The index of an effect among the effects of its turn. */
function stepOf({ turn, kind }: TurnEffect): number {
  return kind === "model" ? 2 * turn.replies.length : 2 * turn.replies.length - 1;
}

function outcomeOf(effect: TurnEffect, { work }: Part, now: number): EffectSignal {
  const { turn } = effect;
  if (effect.kind === "tool") {
    const { item, attempt, toolCallId } = effect.operation;
    const result = { tool_call_id: toolCallId, success: true, result: 1 };
    return { type: "conversation.tool.completed", turn: turn.n, item, attempt, result };
  }
  if (effect.kind === "assembly" || effect.kind === "join")
    expect.fail("no agent has a hook, and none joins");
  const { item, attempt } = effect.call;
  const isLast = stepOf(effect) + 1 >= work.length;
  const toolCalls = isLast ? [] : [{ id: `call_${item}`, name: "safe", arguments: {} }];
  return {
    type: "conversation.llm.completed",
    turn: turn.n,
    item,
    attempt,
    reply: { text: "Done.", toolCalls, finishReason: isLast ? "stop" : "tool_calls" },
    facts: { startedAt: now, finishedAt: now },
  };
}

const duration = fc.oneof(fc.nat(50), fc.nat(3_000), fc.nat(120_000));
const neighbour = fc.record<Part>({
  at: fc.oneof(fc.constant(0), fc.nat(60_000)),
  work: fc
    .array(duration, { minLength: 1, maxLength: 5 })
    .map((list) => (list.length % 2 === 0 ? list.slice(1) : list)),
});
const poisoned = fc.record<Required<Part>>({
  at: fc.oneof(fc.constant(0), fc.nat(60_000)),
  work: fc.constant<number[]>([0]),
  kills: fc.oneof(fc.nat(20), fc.nat(2_000), fc.nat(60_000)),
});

/** Returns the outcomes of a world's turns: of turns that kill their actor, and of the others. */
function ends(world: World) {
  const of = (isPoisoned: boolean) =>
    [...world.ended.values()]
      .filter(({ n }) => (world.partOf.get(n)?.kills !== undefined) === isPoisoned)
      .map(({ status, error }) => error?.code ?? status);
  return { poisoned: new Set(of(true)), others: new Set(of(false)) };
}

describe("a turn that kills its actor whenever it runs", () => {
  test("ISOLATE-1 ISOLATE-2 ISOLATE-4 A72 fails alone: its neighbours complete, whatever their length and time", () => {
    fc.assert(
      fc.property(
        fc.array(neighbour, { minLength: 1, maxLength: 12 }),
        fc.array(poisoned, { minLength: 1, maxLength: 3 }),
        (neighbours, bad) => {
          const world = new World();
          world.run([...neighbours, ...bad]);
          expect(ends(world)).toEqual({
            poisoned: new Set(["RECOVERY_EXHAUSTED"]),
            others: new Set(["completed"]),
          });
        },
      ),
      { numRuns: 500 },
    );
  });

  test.each([0, 31, 63])(
    "ISOLATE-2 fails alone among as many as may be active, as number %i of them",
    (place) => {
      const parts = Array.from(
        { length: MAX_ACTIVE_TURNS },
        (_, index): Part => ({ at: 0, work: [20_000 + index] }),
      );
      parts[place] = { at: 0, work: [0], kills: 1_000 };
      const world = new World();
      world.run(parts);
      expect(ends(world)).toEqual({
        poisoned: new Set(["RECOVERY_EXHAUSTED"]),
        others: new Set(["completed"]),
      });
      expect(world.deaths).toBe(MAX_RECOVERIES + 1);
    },
  );

  test("ISOLATE-3 RECOVERY_EXHAUSTED follows eleven crashes and 27.75 s of pauses", () => {
    const world = new World();
    world.run([{ at: 0, work: [0], kills: 0 }]);
    expect(world.deaths).toBe(11);
    expect(world.now - world.deaths * RESTART_MS).toBe(27_750);
    const pauses = Array.from({ length: 12 }, (_, crashes) => resumePause(crashes));
    expect(pauses).toEqual([0, 0, 250, 500, 1_000, 2_000, 4_000, ...Array(5).fill(MAX_RESUME_PAUSE_MS)]);
  });
});

describe("deployments", () => {
  test("ISOLATE-1 A72 fail no turn that makes progress between them, however many there are", () => {
    const gaps = fc.array(fc.integer({ min: 5_500, max: 20_000 }), { minLength: 11, maxLength: 60 });
    const steps = fc.array(fc.nat(5_000), { minLength: 29, maxLength: 29 });
    fc.assert(
      fc.property(gaps, fc.array(steps, { minLength: 1, maxLength: 5 }), (pauses, turns) => {
        let at = 0;
        const deploys = pauses.map((gap) => (at += gap));
        const world = new World();
        world.run(
          turns.map((work) => ({ at: 0, work })),
          deploys,
        );
        expect(ends(world).others).toEqual(new Set(["completed"]));
      }),
      { numRuns: 200 },
    );
  });

  test("ISOLATE-1 a turn fails at the eleventh kill within one call, and completes if the call has ended before it", () => {
    const endOf = (work: number[], last: number) => {
      const world = new World();
      const ten = Array.from({ length: MAX_RECOVERIES }, (_, index) => (index + 1) * 10_000);
      world.run([{ at: 0, work }], [...ten, last]);
      return [...world.ended.values()].map(({ status, error }) => error?.code ?? status);
    };
    // The tenth kill is at 100 s, and the pause after it takes 5 s.
    expect(endOf([15_000, 15_000, 0], 120_000)).toEqual(["RECOVERY_EXHAUSTED"]);
    expect(endOf([15_000, 15_000, 0], 120_100)).toEqual(["completed"]);
  });
});

describe("waiting turns", () => {
  const turnAt = (n: number, crashes: number, members: Partial<Turn> = {}): [number, Turn] => [
    n,
    {
      n,
      recoveries: crashes,
      operations: [],
      call: { item: 1, attempt: 1, notBefore: 0, final: false },
      ...members,
    } as unknown as Turn,
  ];

  test("ISOLATE-2 with fewer crashes go first; a turn without crashes, or without effects, takes no place", () => {
    const active = new Map([
      turnAt(1, 9),
      turnAt(2, 4),
      turnAt(3, 0),
      turnAt(4, 4),
      turnAt(5, 7, { call: null }),
    ]);
    expect([...delayedTurns(active)]).toEqual([4, 1]);
    active.delete(2);
    expect([...delayedTurns(active)]).toEqual([1]);
    active.delete(4);
    expect([...delayedTurns(active)]).toEqual([]);
  });

  test("EFFECT-6 call for no effect, and for theirs once the others have an outcome", () => {
    const world = new World();
    const message: Signal = {
      type: "conversation.user.message",
      caller: { type: "user", userId: "ada" },
      data: { content: "go" },
    };
    for (let turn = 0; turn < 2; turn++) world.send(message);
    for (let crash = 0; crash < 4; crash++) {
      world.now += MAX_RESUME_PAUSE_MS;
      world.send({ type: "conversation.cmd.recover" });
    }
    const [running, ...others] = effectsOfTurns(world.state);
    if (running === undefined) throw new Error("Nothing runs.");
    expect([running.turn.n, others]).toEqual([1, []]);
    world.send(outcomeOf(running, { at: 0, work: [0] }, world.now));
    expect(effectsOfTurns(world.state).map(({ turn }) => turn.n)).toEqual([2]);
  });

  test("ISOLATE-1 crashes before an outcome do not count", () => {
    expect(crashesOf({ recoveries: 7 })).toBe(7);
    expect(crashesOf({ recoveries: 7, overcome: 7 })).toBe(0);
    expect([...delayedTurns(new Map([turnAt(1, 9), turnAt(2, 9, { overcome: 9 })]))]).toEqual([]);
  });
});

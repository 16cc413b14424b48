/** Trees of runs, which start no more runs at once than they have room for. `TREE_SEEDS` sets how many random trees are tried. */
import { describe, expect, test } from "vitest";
import { dueIn, effectsOf } from "../../src/agents/coordinator/core/effects.ts";
import { waitsForPerson } from "../../src/agents/coordinator/core/holds.ts";
import { tokenOf } from "../../src/agents/coordinator/core/operations.ts";
import { plan } from "../../src/agents/coordinator/core/plan.ts";
import { isOver, type RunState, type Token } from "../../src/agents/coordinator/core/state.ts";
import {
  isAtRest,
  nextShare,
  shareInUse,
  treeShareBelow,
  treeShareOf,
} from "../../src/agents/coordinator/core/tree-share.ts";
import { workflowSchema } from "../../src/library/workflows/workflow-schema.ts";
import type { PinnedWorkflow } from "../../src/protocol/pinned-workflow.ts";
import { RUN_WAITS } from "../../src/protocol/run-call.ts";
import { Random } from "../../src/testing/random.ts";
import { PlayedTree } from "../support/workflows/tree.ts";

const SEEDS = Number(process.env.TREE_SEEDS ?? 20);

const TASK = { library: "lib", id: "task", effect: "pure", timeoutMs: 60_000 } as const;
const GATE = {
  ...{ library: "lib", id: "gate", effect: "pure", timeoutMs: 1_000 },
  task: {
    ...{ id: "gate", version: 1, hash: "", inputSchema: { type: "object" } },
    steps: [{ ref: "ask", action: { kind: "human.input", prompt: "Well?", schema: { type: "object" } } }],
  },
} as PinnedWorkflow["tasks"][string];

type Work = "gate" | "task" | "agent";

/** Returns a workflow that fans out over a node, which a sub-workflow or other work may have. `before` and `after`: the work beside it. */
function fanOut(
  width: number,
  below: PinnedWorkflow | Work,
  { before, after }: { before?: Work | undefined; after?: Work | undefined } = {},
): PinnedWorkflow {
  const isRun = typeof below === "object";
  const works = Object.entries({ before, below: isRun ? undefined : below, after });
  const nodeOf = (ref: string, work?: string) => ({
    ref,
    ...(work === "agent" && { agent: "helper", mode: "delegate" }),
    ...((work === "task" || work === "gate") && { task: "lib/task" }),
  });
  const definition = workflowSchema.parse({
    inputSchema: { type: "object" },
    initialNode: "start",
    nodes: [
      { ref: "start" },
      nodeOf("before", before),
      isRun ? { ref: "below", workflow: "lib/w" } : nodeOf("below", below),
      nodeOf("after", after),
      { ref: "end" },
    ],
    transitions: [
      { ref: "a", from: "start", to: "before", siblingGroup: "g", spawnCount: width },
      { ref: "b", from: "before", to: "below" },
      { ref: "c", from: "below", to: "after" },
      { ref: "d", from: "after", to: "end", synchronization: { siblingGroup: "g", strategy: "all" } },
    ],
  });
  return {
    ...{ library: "lib", id: "w", version: 1, hash: "", definition },
    tasks: Object.fromEntries(
      works.flatMap(([ref, work]) =>
        work === "task" || work === "gate" ? [[ref, work === "gate" ? GATE : TASK]] : [],
      ),
    ),
    workflows: isRun ? { below } : {},
  };
}

function played(
  workflow: PinnedWorkflow,
  { runs = 4, tokens = 100_000, width = 1_000, random = new Random(1), deaths = 0 } = {},
): PlayedTree {
  const ids = { id: "run_01", tenant: "local", projectId: "default", stem: "01ARZ3NDEKTSV4RRFFQ" };
  return new PlayedTree({
    record: { ...ids, workflow, input: {}, startedBy: "ada", request: "", width, share: { runs, tokens } },
    outcome: () => ({ output: {} }),
    ...{ random, deaths },
  });
}

/**
 * `open`: the runs below the first run that have begun and not ended. `working`: the open runs that do not rest and do
 * not wait for an open run below.
 */
function below(tree: PlayedTree): { open: RunState[]; working: RunState[] } {
  const states = [...tree.runs.values()].map(({ state }) => state);
  const open = states.filter((state) => state.record.parent !== undefined && !isOver(state));
  const isAbove = (id: string) => open.some(({ record }) => record.parent?.runId === id);
  return { open, working: open.filter((state) => !isAtRest(state) && !isAbove(state.record.id)) };
}

const roomGivenBy = (state: RunState) =>
  [...state.tokens.values()].reduce((sum, token) => sum + shareInUse(token), 0);

/** Returns the runs below the first run that their tokens do not describe, although all reports of these runs have arrived. */
function misreported(tree: PlayedTree): object[] {
  return below(tree).open.flatMap((run) => {
    const { id, parent } = run.record;
    const above = tree.runs.get(parent?.runId ?? "")?.state;
    const token = above?.tokens.get(tokenOf(above.record, parent?.operationId ?? "") ?? -1);
    if (token?.phase.kind !== "working" || token.phase.attempt !== parent?.attempt) return [];
    if (tree.isUnderWay(RUN_WAITS, id)) return [];
    const { share = 0, wait } = token.phase;
    const [rests, holds] = [isAtRest(run), waitsForPerson(run)];
    const isWrong = shareInUse(token) !== (rests ? 0 : share) || (wait?.isHeld ?? false) !== holds;
    return isWrong ? [{ id, rests, held: shareInUse(token), holds, wait }] : [];
  });
}

/** Reports whether a run has started a run since an earlier state. */
function hasStarted(before: RunState | undefined, { tokens }: RunState): boolean {
  const begun = (token: Token | undefined) =>
    token?.phase.kind === "working" && token.phase.share !== undefined;
  return [...tokens.values()].some((token) => begun(token) && !begun(before?.tokens.get(token.id)));
}

/** Plays a tree to its end. Returns the most runs that have worked at once, and were open. */
async function mostOf(tree: PlayedTree): Promise<{ working: number; open: number }> {
  const most = { working: 0, open: 0 };
  for (let step = 0; await tree.step(); step++) {
    const { working, open } = below(tree);
    most.working = Math.max(most.working, working.length);
    most.open = Math.max(most.open, open.length);
    if (step > 50_000) throw new Error("The tree is stuck.");
  }
  return most;
}

describe("I2 the room of a tree", () => {
  test("TREESHARE-1 TREESHARE-2 TREESHARE-3 random trees end within their room, also if actors die", async () => {
    const failing: object[] = [];
    let queued = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const random = new Random(seed);
      const runs = random.int(1, 6);
      let workflow = fanOut(random.int(1, 3), "task");
      for (let level = random.int(1, 4); level > 0; level--)
        workflow = fanOut(random.int(1, level > 2 ? 2 : 6), workflow, {
          before: random.chance(0.5) ? "task" : undefined,
        });
      const tree = played(workflow, { runs, width: random.pick([2, 1_000]), random, deaths: 0.02 });
      let tooMuch = 0;
      for (let step = 0; await tree.step(); step++) {
        for (const { state } of tree.runs.values())
          if (roomGivenBy(state) > treeShareOf(state.record).runs) tooMuch += 1;
        if (below(tree).working.length > runs) tooMuch += 1;
        if ([...tree.root.tokens.values()].some(({ phase }) => phase.kind === "ready")) queued += 1;
        if (step > 50_000) throw new Error(`Seed ${seed} is stuck.`);
      }
      if (tooMuch > 0 || tree.root.status !== "completed")
        failing.push({ seed, tooMuch, status: tree.root.status, error: tree.root.error });
    }
    expect(failing).toEqual([]);
    expect(queued).toBeGreaterThan(SEEDS);
  });

  test("TREESHARE-2 TREESHARE-4 HOLD-1 in random trees with people and agents, a run holds its room exactly while it does not rest", async () => {
    const failing: object[] = [];
    let resumed = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const random = new Random(seed);
      const work = () => random.pick(["task", "gate", "agent"] as const);
      const perhaps = () => (random.chance(0.7) ? work() : undefined);
      const beside = () => ({ before: perhaps(), after: perhaps() });
      const runs = random.int(1, 4);
      let workflow = fanOut(random.int(1, 3), work(), beside());
      for (let level = random.int(1, 2); level > 0; level--)
        workflow = fanOut(random.int(1, 4), workflow, beside());
      const tree = played(workflow, { runs, width: random.pick([2, 1_000]), random, deaths: 0.02 });
      const before = new Map<string, RunState>();
      let resting = new Set<string>();
      let wrong: object[] = [];
      for (let step = 0; wrong.length === 0 && (await tree.step()); step++) {
        wrong = misreported(tree);
        for (const [id, { state }] of tree.runs) {
          const known = before.get(id);
          if (known === state) continue;
          before.set(id, state);
          const given = roomGivenBy(state);
          if (given > treeShareOf(state.record).runs && hasStarted(known, state)) wrong.push({ id, given });
        }
        const { open } = below(tree);
        resumed += open.filter((run) => resting.has(run.record.id) && !isAtRest(run)).length;
        resting = new Set(open.filter(isAtRest).map(({ record }) => record.id));
        if (step > 50_000) throw new Error(`Seed ${seed} is stuck.`);
      }
      const { status, error } = tree.root;
      if (wrong.length > 0 || status !== "completed") failing.push({ seed, wrong, status, error });
    }
    expect(failing).toEqual([]);
    expect(resumed).toBeGreaterThan(SEEDS);
  });

  test("TREESHARE-2 starts without room stay ready, need no wake-up, and begin as other runs end", async () => {
    const tree = played(fanOut(10, fanOut(1, "task")), { runs: 3 });
    const { root } = tree;
    expect(tree.sent.filter((type) => type === "run.start")).toHaveLength(3);
    expect([...root.tokens.values()].filter(({ phase }) => phase.kind === "ready")).toHaveLength(7);
    expect([dueIn(root, tree.now, tree.now), effectsOf(root)]).toEqual([null, []]);
    expect((await mostOf(tree)).working).toBeLessThanOrEqual(3);
    expect(tree.root.status).toBe("completed");
    expect(tree.runs.size).toBe(11);
  });

  test("RUNSIGNAL-4 a run with starts that wait for room is woken any number of times, and is not interrupted", () => {
    const tree = played(fanOut(10, fanOut(1, "gate")), { runs: 3 });
    let { root } = tree;
    for (let wakes = 0; wakes < 30; wakes++)
      root = plan(root, [{ type: "run.recover" }], tree.now)?.state ?? root;
    expect(root).toMatchObject({ status: "running", tokens: { size: 10 } });
    expect(root.recoveries).toBeUndefined();
  });

  test("TREESHARE-3 a chain of ten levels ends with room for one run", async () => {
    let workflow = fanOut(2, "task");
    for (let level = 0; level < 10; level++) workflow = fanOut(1, workflow);
    const tree = played(workflow, { runs: 1 });
    await tree.finish();
    expect(tree.root.status).toBe("completed");
  });

  test("TREESHARE-4 runs that wait for people reserve no room, so all their questions are asked", async () => {
    const tree = played(fanOut(20, fanOut(1, "gate")), { runs: 2, random: new Random(3) });
    const asked = () => below(tree).open.filter(isAtRest).length;
    let most = 0;
    for (let step = 0; step < 400 && !isOver(tree.root); step++) {
      await tree.step();
      most = Math.max(most, asked());
    }
    await tree.finish();
    expect(tree.root.status).toBe("completed");
    expect(most).toBeGreaterThan(2);
    expect(tree.sent).toContain("run.waits");
  });

  test("TREESHARE-4 an out-of-date report of a rest is ignored", () => {
    const tree = played(fanOut(1, fanOut(1, "task")), { runs: 1 });
    const [token = -1] = [...tree.root.tokens.keys()];
    const report = (seq: number, isResting: boolean) =>
      tree.take("run_01", {
        ...{ type: "run.waits", token, attempt: 1 },
        wait: { seq, isHeld: isResting, ...(isResting && { isAtRest: true }) },
      });
    report(7, false);
    report(5, true);
    expect(roomGivenBy(tree.root)).toBe(1);
    report(9, true);
    expect(roomGivenBy(tree.root)).toBe(0);
  });

  test("TREESHARE-1 SUBRUN-2 a cancellation ends waiting starts and working runs", async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const random = new Random(seed);
      const tree = played(fanOut(12, fanOut(5, fanOut(1, "task"))), { runs: 4, random });
      for (let step = random.int(0, 40); step > 0; step--) await tree.step();
      tree.take("run_01", { type: "run.cancel", by: "ada" });
      expect(tree.root.tokens.size).toBe(0);
      const begun = tree.runs.size;
      await tree.finish();
      expect(below(tree).open, `seed ${seed}`).toEqual([]);
      // Starts that were under way may arrive before their cancellation.
      expect(tree.runs.size - begun).toBeLessThanOrEqual(4 * 2);
    }
  });

  test("TREESHARE-5 a run with more active tokens than its share fans out further one token at a time", async () => {
    const definition = workflowSchema.parse({
      inputSchema: { type: "object" },
      initialNode: "start",
      nodes: [
        { ref: "start" },
        { ref: "row" },
        { ref: "work", task: "lib/task" },
        { ref: "joined" },
        { ref: "end" },
      ],
      transitions: [
        { ref: "a", from: "start", to: "row", siblingGroup: "rows", spawnCount: 40 },
        { ref: "b", from: "row", to: "work", siblingGroup: "cells", spawnCount: 20 },
        { ref: "c", from: "work", to: "joined", synchronization: { siblingGroup: "cells", strategy: "all" } },
        { ref: "d", from: "joined", to: "end", synchronization: { siblingGroup: "rows", strategy: "all" } },
      ],
    });
    const workflow = {
      library: "lib",
      id: "w",
      version: 1,
      hash: "",
      definition,
      tasks: { work: TASK },
      workflows: {},
    };
    const most = async (tokens: number) => {
      const tree = played(workflow, { tokens });
      let found = tree.root.tokens.size;
      while (await tree.step()) found = Math.max(found, tree.root.tokens.size);
      expect(tree.root.status).toBe("completed");
      return found;
    };
    expect(await most(100_000)).toBe(800);
    expect(await most(80)).toBeLessThanOrEqual(80 + 20);
    expect(await most(1)).toBeLessThanOrEqual(40 + 20);
  });

  test("TREESHARE-1 TREESHARE-2 shares never exceed the room, and later tokens get shares", () => {
    for (let room = 1; room <= 20; room++)
      for (let tokens = 1; tokens <= 25; tokens++) {
        let free = room;
        for (let others = tokens - 1; others >= 0; others--) {
          const share = nextShare(free, others);
          if (others < room && tokens <= room) expect(share).toBeGreaterThan(0);
          free -= share;
          expect(free).toBeGreaterThanOrEqual(0);
        }
      }
    expect(treeShareBelow({ runs: 64, tokens: 100_000 }, 1)).toEqual({ runs: 1, tokens: 1_562 });
  });
});

/**
 * Whole conversations under seeded faults (H1, A72, A73): a batch in every run, the plans of defects that were found this
 * way, and the proof that the harness finds what is planted. `npm run simulate` runs as many seeds as one likes.
 */
import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { generatePlan } from "../simulation/generate.ts";
import type { Variant } from "../simulation/life.ts";
import type { Fault, FaultKind, Plan } from "../simulation/plan.ts";
import { Random } from "../simulation/random.ts";
import { reductions, shrink } from "../simulation/shrink.ts";
import { fingerprint, reportOf, shrinkTrial, type Trial, tryPlan, trySeeds } from "../simulation/simulate.ts";

const SEEDS = 200;
const KINDS: FaultKind[] = ["crash", "error", "loss", "delay", "duplicate", "swap", "jump", "evict"];

async function expectClean(plan: Plan): Promise<Trial> {
  const trial = await tryPlan(plan);
  expect(trial.violations, reportOf(trial)).toEqual([]);
  return trial;
}

test(`H1 A72 A73 ${SEEDS} seeds of users, models, tools and faults keep every property, and the faults happen`, async () => {
  const { failures, table, turns, lives } = await trySeeds(1, SEEDS);
  expect(failures).toEqual([]);
  for (const kind of KINDS) {
    const fired = [...table].filter(([name]) => name.startsWith(`${kind} `)).map(([, row]) => row.fired);
    expect(Math.max(...fired), `faults of kind ${kind} that happened`).toBeGreaterThan(1);
  }
  expect(turns).toBeGreaterThan(SEEDS);
  expect(lives).toBeGreaterThan(SEEDS);
}, 60_000);

test("H1 a simulation repeats to the last frame", async () => {
  for (const seed of [3, 17, 58, 204, 406]) {
    const [first, second] = [await tryPlan(generatePlan(seed)), await tryPlan(generatePlan(seed))];
    expect(second.history.timeline).toEqual(first.history.timeline);
    expect(fingerprint(second.history)).toBe(fingerprint(first.history));
  }
  expect(fingerprint((await tryPlan(generatePlan(4))).history)).not.toBe(
    fingerprint((await tryPlan(generatePlan(3))).history),
  );
});

test("H1 RANDOM-1 a fork depends on its seed and label only", () => {
  const drawn = new Random(7);
  drawn.fraction();
  const draws = (random: Random) => random.list(8, () => random.int(0, 1_000_000));
  expect(draws(drawn.fork("a"))).toEqual(draws(new Random(7).fork("a")));
  expect(draws(new Random(7).fork("b"))).not.toEqual(draws(new Random(7).fork("a")));
  expect(draws(new Random(8).fork("a"))).not.toEqual(draws(new Random(7).fork("a")));
});

describe("defects that a simulation found", () => {
  const directory = join(import.meta.dirname, "../simulation/plans");
  const files = globSync("*.json", { cwd: directory }).sort();
  const plans = files.map((file): { title: string; plan: Plan } =>
    JSON.parse(readFileSync(join(directory, file), "utf8")),
  );

  test.each(plans)("$title", async ({ plan }) => {
    const { history } = await expectClean(plan);
    for (const fault of plan.faults) expect(history.fired).toContain(fault);
  });

  test("there are some", () => expect(plans.length).toBeGreaterThan(3));
});

/** Two tools in parallel, in one short turn. */
const SMALL: Plan = {
  seed: 1,
  conversations: [
    {
      maxMoves: 4,
      clients: [
        {
          user: "ada",
          channel: "socket",
          joins: 0,
          latency: 5,
          absences: [],
          messages: [
            {
              waitsFor: "acknowledgement",
              pause: 0,
              length: 2,
              replies: [
                {
                  failures: [],
                  length: 12,
                  pace: 20,
                  calls: [
                    { tool: "charge", arguments: "valid", ms: 40, outcome: "answer", progress: 1 },
                    { tool: "save", arguments: "valid", ms: 10, outcome: "answer", progress: 0 },
                  ],
                },
              ],
            },
          ],
        },
      ],
    },
  ],
  faults: [],
};

const withFaults = (...faults: Omit<Fault, "conversation">[]): Plan => ({
  ...SMALL,
  // SAFETY: `Omit` forgets which members belong to which kind; each call gives those of one.
  faults: faults.map((fault) => ({ conversation: 0, ...fault }) as Fault),
});
const crashAt = (port: Fault["port"], nth: number): Plan =>
  withFaults({ port, nth, kind: "crash", when: "after" } as Omit<Fault, "conversation">);

interface Planted {
  defect: string;
  variant: Variant;
  plan: Plan;
  property: string;
}

const PLANTED: Planted[] = [
  {
    defect: "idempotency keys that are forgotten",
    property: "once",
    plan: withFaults({ port: "socket.up", nth: 1, kind: "duplicate" }),
    variant: {
      keyValue: (keyValue) => ({
        ...keyValue,
        put: (key, value) => (key.startsWith("seen:") ? undefined : keyValue.put(key, value)),
      }),
    },
  },
  {
    defect: "an executor that runs what it is given twice",
    property: "tool runs",
    plan: SMALL,
    variant: {
      executor: (executor) => ({
        async *run(calls, signal) {
          for await (const _ of executor.run(calls, signal));
          yield* executor.run(calls, signal);
        },
      }),
    },
  },
  {
    defect: "an executor that mixes up its answers",
    property: "results",
    plan: SMALL,
    variant: {
      executor: (executor) => ({
        async *run(calls, signal) {
          const ids = calls.map(({ operationId }) => operationId);
          for await (const report of executor.run(calls, signal)) {
            const other = ids[(ids.indexOf(report.operationId) + 1) % ids.length];
            yield { ...report, operationId: other ?? report.operationId };
          }
        },
      }),
    },
  },
  {
    defect: "a wake-up that is never set",
    property: "ends",
    plan: { ...crashAt("model.piece", 2), conversations: leavingAfter(200) },
    variant: { window: () => () => undefined },
  },
  {
    defect: "commits that are not atomic",
    property: "once",
    plan: crashAt("sql.run", 2),
    variant: { database: (database) => ({ ...database, transaction: (body) => body() }) },
  },
  {
    defect: "a record that no client is told of",
    property: "frames",
    plan: SMALL,
    variant: {
      publish: (publish) => (frames) => publish(frames.filter(({ type }) => type !== "tool.completed")),
    },
  },
  {
    defect: "text that is lost",
    property: "frames",
    plan: SMALL,
    variant: {
      publish: (publish) => {
        let count = 0;
        return (frames) =>
          publish(frames.filter(({ type }) => type !== "message.delta" || ++count % 3 !== 0));
      },
    },
  },
  {
    defect: "text that is shown again after it was taken back",
    property: "frames",
    plan: withFaults({ port: "model.piece", nth: 8, kind: "error", times: 1 } as Omit<Fault, "conversation">),
    variant: {
      publish: (publish) => (frames) => publish(frames.filter(({ type }) => type !== "message.reset")),
    },
  },
];

function leavingAfter(ms: number): Plan["conversations"] {
  return SMALL.conversations.map((conversation) => ({
    ...conversation,
    clients: conversation.clients.map((client) => ({ ...client, leaves: ms })),
  }));
}

describe("H1 the harness finds what is planted", () => {
  test.each(PLANTED)("$defect", async ({ variant, plan, property }) => {
    await expectClean(plan);
    const { violations } = await tryPlan(plan, variant);
    expect(violations.map((violation) => violation.property)).toContain(property);
  });

  test("random seeds find a forgotten key too, and the plan shrinks to the message and what repeats it", async () => {
    const variant = PLANTED[0]?.variant;
    const { failures } = await trySeeds(1, 120, variant);
    expect(failures.length).toBeGreaterThan(2);
    const [failure] = failures;
    const trial = await tryPlan(generatePlan(failure?.seed ?? 0), variant);
    const { plan } = await shrinkTrial(trial, variant, 20_000);
    const messages = plan.conversations
      .flatMap(({ clients }) => clients)
      .flatMap((client) => client.messages);
    expect(messages).toHaveLength(1);
    expect(plan.faults.length).toBeLessThanOrEqual(2);
    expect(JSON.stringify(plan).length).toBeLessThan(JSON.stringify(trial.plan).length);
    await expectClean(plan);
  }, 60_000);
});

test("H1 SHRINK-1 what is returned fails still, and no step makes it smaller", async () => {
  const fails = async (plan: Plan) =>
    plan.faults.some(({ kind, nth }) => kind === "crash" && nth >= 2) &&
    plan.conversations.some(({ clients }) => clients.some(({ messages }) => messages.length > 0));
  const seeds = Array.from({ length: 60 }, (_, index) => generatePlan(index));
  for (const plan of seeds) {
    if (!(await fails(plan))) continue;
    const shrunk = await shrink(plan, fails, () => true);
    expect(shrunk.minimal).toBe(true);
    expect(await fails(shrunk.plan)).toBe(true);
    for (const smaller of reductions(shrunk.plan)) expect(await fails(smaller)).toBe(false);
    expect(shrunk.plan.faults).toHaveLength(1);
    expect(shrunk.plan.faults[0]).toMatchObject({ kind: "crash", nth: 2 });
  }
});

test.each([["--seeds=x"], ["--from=0"], ["--foo"], ["--plan=there-is-no-plan.json"]])(
  "npm run simulate refuses %s, rather than find nothing wrong with nothing",
  async (option) => {
    const script = join(import.meta.dirname, "../../scripts/simulate.ts");
    const run = promisify(execFile)(process.execPath, [script, option]);
    await expect(run).rejects.toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.not.stringContaining("    at "),
    });
  },
);

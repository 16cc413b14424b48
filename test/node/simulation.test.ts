/**
 * Simulated conversations under seeded faults (H1, A72, A73): a batch in every run, the plans of earlier defects, and
 * planted defects that the checks must find. `npm run simulate` runs any number of seeds.
 */
import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { Random } from "../../src/testing/random.ts";
import { shrink } from "../../src/testing/shrink.ts";
import { generatePlan } from "../simulation/generate.ts";
import type { ActPlan, Fault, FaultKind, Plan } from "../simulation/plan.ts";
import { PLANTED, PLANTED_COMPACTIONS, PLANTED_STOPS } from "../simulation/planted.ts";
import { PLANTED_FORKS } from "../simulation/planted-forks.ts";
import { talking } from "../simulation/planted-plans.ts";
import { PLANTED_REPLACEMENTS } from "../simulation/planted-replacements.ts";
import { PLANTED_ENDS, PLANTED_SIGNALS } from "../simulation/planted-signals.ts";
import { reductions } from "../simulation/shrink.ts";
import { fingerprint, reportOf, shrinkTrial, type Trial, tryPlan, trySeeds } from "../simulation/simulate.ts";

const SEEDS = 40;
/** Defects that take more seeds are found by their plans. */
const FEW_SEEDS = 60;
const KINDS: FaultKind[] = ["crash", "error", "loss", "delay", "duplicate", "jump", "evict"];

async function expectClean(plan: Plan): Promise<Trial> {
  const trial = await tryPlan(plan);
  expect(trial.violations, reportOf(trial)).toEqual([]);
  return trial;
}

test(`STATE-1 RECORDS-1 REPLACE-2 REPLACE-3 FORK-1 FORK-2 FORK-4 ERASE-6 H1 A72 A73 ${SEEDS} seeds of users, models, tools and faults keep every property, and the faults happen`, async () => {
  const {
    failures,
    table,
    turns,
    lives,
    summaries,
    titles,
    queued,
    ended,
    approved,
    unapproved,
    replayed,
    replaced,
    forks,
    erased,
  } = await trySeeds(1, SEEDS);
  expect(failures).toEqual([]);
  for (const kind of KINDS) {
    const fired = [...table].filter(([name]) => name.startsWith(`${kind} `)).map(([, row]) => row.fired);
    expect(Math.max(...fired), `faults of kind ${kind} that happened`).toBeGreaterThan(1);
  }
  expect(turns).toBeGreaterThan(SEEDS);
  expect(summaries).toBeGreaterThan(SEEDS / 20);
  expect(titles).toBeGreaterThan(SEEDS / 20);
  expect(lives).toBeGreaterThan(SEEDS);
  expect(queued).toBeGreaterThan(SEEDS / 20);
  expect(ended).toBeGreaterThan(SEEDS / 40);
  expect(approved).toBeGreaterThan(SEEDS / 20);
  expect(unapproved).toBeGreaterThan(SEEDS / 40);
  expect(replayed).toBe(turns);
  expect(replaced).toBeGreaterThan(SEEDS / 40);
  expect(forks).toBeGreaterThan(SEEDS / 40);
  expect(erased).toBeGreaterThan(SEEDS / 80);
}, 180_000);

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

test("G9 REPLACE-9 a message with a lost file can be answered again", async () => {
  const acts: ActPlan[] = [{ does: "regenerate", whose: "own", upon: "over", nth: 1, pause: 50 }];
  const fault: Fault = { conversation: 0, port: "object.get", nth: 1, kind: "loss" };
  const { history } = await expectClean({ ...talking([{ images: 1 }], { acts }), faults: [fault] });
  expect(history.fired).toEqual([fault]);
  expect(history.outcomes.map(({ turns }) => turns.map(({ status }) => status))).toEqual([
    ["completed", "completed"],
  ]);
});

describe("H1 the harness finds planted defects", () => {
  test.each([
    ...PLANTED,
    ...PLANTED_STOPS,
    ...PLANTED_COMPACTIONS,
    ...PLANTED_SIGNALS,
    ...PLANTED_ENDS,
    ...PLANTED_REPLACEMENTS,
    ...PLANTED_FORKS,
  ])("$defect", async ({ variant, plan, property }) => {
    await expectClean(plan);
    const { violations } = await tryPlan(plan, variant);
    expect(violations.map((violation) => violation.property)).toContain(property);
  });

  test.each(
    [...PLANTED_STOPS, ...PLANTED_COMPACTIONS, ...PLANTED_SIGNALS].filter(({ seeds }) => seeds <= FEW_SEEDS),
  )("random seeds find $defect", async ({ variant, property, from = 1, seeds }) => {
    for (let seed = from; seed <= seeds; seed++) {
      const { violations } = await tryPlan(generatePlan(seed), variant);
      if (violations.some((violation) => violation.property === property)) return;
    }
    expect.fail(`${seeds} seeds found nothing.`);
  });

  test("random seeds find a forgotten key too, and the plan shrinks to the message and its repetition", async () => {
    const variant = PLANTED[0]?.variant;
    const { failures } = await trySeeds(1, 12, variant);
    expect(failures.length).toBeGreaterThan(1);
    const [failure] = failures;
    const trial = await tryPlan(generatePlan(failure?.seed ?? 0), variant);
    const { plan } = await shrinkTrial(trial, variant, 10_000);
    const messages = plan.conversations
      .flatMap(({ clients }) => clients)
      .flatMap((client) => client.messages);
    expect(messages).toHaveLength(1);
    expect(plan.faults.length).toBeLessThanOrEqual(2);
    expect(JSON.stringify(plan).length).toBeLessThan(JSON.stringify(trial.plan).length);
    await expectClean(plan);
  }, 180_000);
});

test("H1 SHRINK-1 the returned plan still fails, and no step makes it smaller", async () => {
  const fails = async (plan: Plan) =>
    plan.faults.some(({ kind, nth }) => kind === "crash" && nth >= 2) &&
    plan.conversations.some(({ clients }) => clients.some(({ messages }) => messages.length > 0));
  const seeds = Array.from({ length: 60 }, (_, index) => generatePlan(index));
  for (const plan of seeds) {
    if (!(await fails(plan))) continue;
    const shrunk = await shrink(plan, fails, { reductions, hasTime: () => true });
    expect(shrunk.minimal).toBe(true);
    expect(await fails(shrunk.plan)).toBe(true);
    for (const smaller of reductions(shrunk.plan)) expect(await fails(smaller)).toBe(false);
    expect(shrunk.plan.faults).toHaveLength(1);
    expect(shrunk.plan.faults[0]).toMatchObject({ kind: "crash", nth: 2 });
  }
});

test.each([["--seeds=x"], ["--from=0"], ["--foo"], ["--plan=there-is-no-plan.json"]])(
  "npm run simulate refuses %s instead of passing without a run",
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

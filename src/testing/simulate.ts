/**
 * Simulates an application under seeded faults.
 *
 * SIMAPP-1  Each seed plays the same talk with other faults. The seed determines the faults.
 * SIMAPP-2  A seed fails if an acknowledged message has no ended turn, a `once` tool runs twice, attempts of a call differ in their input, an
 *           effect happens twice, a turn does not replay, the runtime logs an error that no fault explains, or the talk or the check throws.
 * SIMAPP-3  A failing seed is shrunk: each shown fault is needed.
 * SIMAPP-4  Options that inject no fault, or play no seed, are refused.
 */
import { z } from "zod";
import { replayRecording } from "../agents/conversation/core/replay/replay.ts";
import { errorText, hasCode } from "../shared/errors.ts";
import { canonicalJson, type Json } from "../shared/json.ts";
import { validate } from "../shared/validation.ts";
import { type TestAppOptions, worldParts } from "./app-options.ts";
import {
  FAULT_KINDS,
  FAULTS_OF,
  type FaultKind,
  FaultPlane,
  faultText,
  type PlannedFault,
  PORTS,
} from "./faults.ts";
import { Random } from "./random.ts";
import { cuts, shrink } from "./shrink.ts";
import { TestApp } from "./test-app.ts";
import type { TestTurn } from "./test-turn.ts";
import { TestWorld } from "./world/test-world.ts";

/** The options of `simulate`. */
export interface SimulateOptions {
  /** The script and the messages of one run. Its models must give the same reply to the same request. */
  talk: (app: TestApp) => void | Promise<void>;
  /** Number of seeds: a whole number from 1. Default: 100. */
  seeds?: number;
  /** The first seed. Default: 1. */
  from?: number;
  /** The kinds of faults, at least one. Default: all. */
  faults?: readonly FaultKind[];
  /** Returns a key for each effect in the outside world, as charges by order. An effect must not happen twice. */
  effects?: () => Iterable<string>;
  /** Checks the outside world after a run. Throws for a violation. */
  check?: (app: TestApp) => void | Promise<void>;
  /** Maximum number of faults in one run: a whole number from 1. Default: 6. */
  maxFaults?: number;
}

const planSchema = z.object({
  seeds: z.int().min(1).default(100),
  from: z.int().default(1),
  faults: z
    .array(z.enum(FAULT_KINDS))
    .min(1)
    .default([...FAULT_KINDS]),
  maxFaults: z.int().min(1).default(6),
});

/** The result of a simulation without a failure. */
export interface SimulationReport {
  seeds: number;
  /** Faults that took effect, by kind. */
  faults: Readonly<Record<FaultKind, number>>;
  turns: number;
  /** Runs of tools and actions. */
  effects: number;
}

/** The error of `simulate`: the failing seed, its faults after shrinking, and the history. */
export class SimulationFailure extends Error {
  override readonly name = "SimulationFailure";

  constructor(
    readonly seed: number,
    readonly violations: readonly string[],
    readonly faults: readonly PlannedFault[],
    readonly history: readonly string[],
  ) {
    super(
      [
        `Seed ${seed} fails:`,
        ...violations.map((violation) => `  ${violation}`),
        faults.length === 0 ? "It fails without faults." : "It needs these faults:",
        ...faults.map((fault) => `  ${faultText(fault)}`),
        "History:",
        ...history.map((line) => `  ${line}`),
        `Run \`simulate(…, { from: ${seed}, seeds: 1 })\` to repeat it.`,
      ].join("\n"),
    );
  }
}

interface Trial {
  violations: string[];
  plane: FaultPlane;
  history: readonly string[];
  turns: number;
  effects: number;
}

/**
 * Plays a talk with the agents of an application, once for each seed, while actors crash, requests are lost, late and repeated, and tools and
 * models fail. Throws `SimulationFailure` for the first seed that breaks a promise, and `INVALID_INPUT` for unusable options.
 *
 * @example
 * await simulate(() => ({ libraries: [shop(bank)] }), {
 *   talk: async (app) => {
 *     app.model.script(call("charge", { order: "42" }), "Paid.");
 *     await app.send("seller", "I take it.");
 *   },
 *   effects: () => bank.charges,
 * });
 */
export async function simulate(
  app: TestAppOptions | (() => TestAppOptions),
  options: SimulateOptions,
): Promise<SimulationReport> {
  const plan = validate(planSchema, options, "", "An option of `simulate`");
  const { seeds, from } = plan;
  const first = await play(app, options, []);
  if (first.violations.length > 0) throw new SimulationFailure(from, first.violations, [], first.history);
  const report = { seeds, faults: { ...NONE }, turns: 0, effects: 0 };
  for (let seed = from; seed < from + seeds; seed++) {
    const planned = planFaults(seed, first.plane.counts, plan);
    const trial = await play(app, options, planned);
    if (trial.violations.length > 0) throw await explained(app, options, seed, trial);
    for (const { kind } of trial.plane.fired) report.faults[kind] += 1;
    report.turns += trial.turns;
    report.effects += trial.effects;
  }
  return report;
}

const NONE: Readonly<Record<FaultKind, number>> = { crash: 0, loss: 0, delay: 0, duplicate: 0, failure: 0 };

/** A model that fails more often fails its turn. */
const MAX_MODEL_FAILURES = 2;

/** Returns the faults of a seed, at crossings that a run without faults has. */
function planFaults(
  seed: number,
  counts: FaultPlane["counts"],
  { faults, maxFaults }: z.infer<typeof planSchema>,
): PlannedFault[] {
  const random = new Random(seed).fork("faults");
  const ports = PORTS.flatMap((port) => {
    const kinds = FAULTS_OF[port].filter((kind) => faults.includes(kind));
    return counts[port] > 0 && kinds.length > 0 ? [{ port, kinds }] : [];
  });
  if (ports.length === 0) return [];
  const drawn = random.list(random.int(1, maxFaults), (): PlannedFault => {
    const { port, kinds } = random.pick(ports);
    const when = random.pick(["before", "after"] as const);
    const fault = { kind: random.pick(kinds), port, nth: random.int(1, counts[port]), when };
    const mayStrikeDuring = fault.kind === "crash" && port === "tool";
    return mayStrikeDuring && random.chance(1 / 3) ? { ...fault, when: "during" } : fault;
  });
  const failures = drawn.filter(({ kind, port }) => kind === "failure" && port === "model");
  return drawn.filter((fault) => !failures.slice(MAX_MODEL_FAILURES).includes(fault));
}

/** Plays the talk once with these faults. */
async function play(
  given: TestAppOptions | (() => TestAppOptions),
  { talk, effects, check }: SimulateOptions,
  planned: readonly PlannedFault[],
): Promise<Trial> {
  const plane = new FaultPlane(planned);
  const options = typeof given === "function" ? given() : given;
  const world = new TestWorld({ ...worldParts(options), faults: plane });
  const app = new TestApp(world);
  const violations: string[] = [];
  try {
    await talk(app);
    await app.settle();
    plane.disarm();
    await app.settle();
    violations.push(...broken(world, app));
    if (effects !== undefined) violations.push(...doubles([...effects()]));
    const checked: unknown = await check?.(app);
    if (checked === false) violations.push("The check returned `false`. Throw an error for a violation.");
  } catch (error) {
    violations.push(errorText(error));
  }
  const trial = {
    ...{ violations, plane, history: [...world.log] },
    ...{ turns: world.acknowledged.length, effects: world.tools.effects.length },
  };
  app.close();
  return trial;
}

/** Returns the promises of the runtime that a run has broken. */
function broken(world: TestWorld, app: TestApp): string[] {
  const violations = world.incidents.map((incident) => `The runtime reports an error: ${incident}`);
  const begun = new Set<string>();
  for (const { conversationId, turnId, content } of world.acknowledged) {
    if (begun.has(turnId)) violations.push(`Two messages have the turn ${turnId}.`);
    begun.add(turnId);
    const found = turnIn(app, conversationId, turnId);
    if (found === undefined) violations.push(`The acknowledged message "${content}" has no turn.`);
    else if (found.status === "waiting" && !world.waitsForPeople)
      violations.push(`The turn of the message "${content}" never ends.`);
    else if (found.status !== "waiting") {
      const { divergence } = replayRecording(app.recording(found));
      if (divergence !== null)
        violations.push(
          `The turn of the message "${content}" does not replay: ${JSON.stringify(divergence)}`,
        );
    }
  }
  const byKey = Map.groupBy(world.tools.effects, ({ tool, operationId }) => `${tool} ${operationId}`);
  for (const runs of byKey.values()) {
    const [first] = runs;
    if (first === undefined || runs.length === 1) continue;
    if (first.effect === "once")
      violations.push(
        `The \`once\` tool "${first.tool}" runs ${runs.length} times for ${first.operationId}.`,
      );
    // SAFETY: the world records inputs as JSON.
    if (new Set(runs.map(({ input }) => canonicalJson(input as Json))).size > 1)
      violations.push(`The runs of "${first.tool}" for ${first.operationId} have different inputs.`);
  }
  return violations;
}

function turnIn(app: TestApp, conversationId: string, turnId: string): TestTurn | undefined {
  try {
    return app.turn(conversationId, turnId);
  } catch (error) {
    if (hasCode(error, "NOT_FOUND")) return undefined;
    throw error;
  }
}

/** Returns the effects that happened more than once. */
function doubles(keys: readonly unknown[]): string[] {
  const other = keys.find((key) => typeof key !== "string");
  if (other !== undefined)
    return [
      `\`effects\` must return texts, such as ids of orders, but it returned a value of the type ${typeof other}.`,
    ];
  const counts = Map.groupBy(keys, (key) => key);
  return [...counts].flatMap(([key, { length }]) =>
    length === 1 ? [] : [`The effect "${key}" happened ${length} times.`],
  );
}

/** Returns the failure of a seed with as few faults as possible. */
async function explained(
  app: TestAppOptions | (() => TestAppOptions),
  options: SimulateOptions,
  seed: number,
  failed: Trial,
): Promise<SimulationFailure> {
  let smallest = failed;
  const sought = new Set(failed.violations.map(kindOf));
  const { plan } = await shrink(
    failed.plane.fired,
    async (faults) => {
      const trial = await play(app, options, faults);
      const isSame = trial.violations.some((violation) => sought.has(kindOf(violation)));
      if (isSame) smallest = trial;
      return isSame;
    },
    { reductions: (faults) => cuts(faults), hasTime: () => true },
  );
  return new SimulationFailure(seed, smallest.violations, plan, smallest.history);
}

/** Returns a violation without ids and counts. */
function kindOf(violation: string): string {
  return violation.replaceAll(/\b(?:op|turn)_\w+|\d+/g, "");
}

/** Runs plans and batches of seeds, and reports failures. */
import { createHash } from "node:crypto";
import { shrink } from "../../src/testing/shrink.ts";
import { check } from "./check.ts";
import { refusedIn } from "./check-queue.ts";
import { titlingsOf } from "./check-titles.ts";
import { generatePlan } from "./generate.ts";
import type { History } from "./history.ts";
import type { Variant } from "./life.ts";
import { FAULTS_OF, faultName, type Plan, PORTS } from "./plan.ts";
import { PROPERTIES, type Violation } from "./properties.ts";
import { replacedId } from "./replaced-turns.ts";
import { reductions } from "./shrink.ts";
import { runPlan } from "./world.ts";

export interface Trial {
  plan: Plan;
  history: History;
  violations: Violation[];
}

export async function tryPlan(plan: Plan, variant?: Variant): Promise<Trial> {
  const history = await runPlan(plan, variant);
  return { plan, history, violations: check(history) };
}

/** Planned and fired faults, by kind and port. */
export type FaultTable = Map<string, { planned: number; fired: number }>;

export interface Batch {
  failures: { seed: number; violations: Violation[] }[];
  table: FaultTable;
  /** Recorded messages, failed turns and lives of actors, to show that the runs did real work. */
  turns: number;
  failedTurns: number;
  lives: number;
  /** Histories that were compacted. */
  summaries: number;
  /** Titles that models wrote. */
  titles: number;
  /** Messages that were queued, queued messages that were refused, and conversations that ended. */
  queued: number;
  refused: number;
  ended: number;
  /** Calls with and without the approval of a person. */
  approved: number;
  unapproved: number;
  /** Turns that replaced others. */
  replaced: number;
  /** Forks, and entries that were erased in forks. */
  forks: number;
  erased: number;
  /** Replayed turns, and entries that a replay takes as recorded, by reason. */
  replayed: number;
  partial: Record<string, number>;
}

export async function trySeeds(from: number, count: number, variant?: Variant): Promise<Batch> {
  const batch: Batch = {
    failures: [],
    table: emptyTable(),
    turns: 0,
    failedTurns: 0,
    lives: 0,
    summaries: 0,
    titles: 0,
    queued: 0,
    refused: 0,
    ended: 0,
    approved: 0,
    unapproved: 0,
    replaced: 0,
    forks: 0,
    erased: 0,
    replayed: 0,
    partial: {},
  };
  for (let seed = from; seed < from + count; seed++) {
    const { plan, history, violations } = await tryPlan(generatePlan(seed), variant);
    if (violations.length > 0) batch.failures.push({ seed, violations });
    const fired = new Set(history.fired);
    for (const fault of plan.faults) {
      const row = batch.table.get(faultName(fault));
      if (row === undefined) continue;
      row.planned += 1;
      if (fired.has(fault)) row.fired += 1;
    }
    batch.forks += history.forks.filter(({ outcome }) => outcome !== undefined).length;
    batch.erased += history.forks.filter(({ erased }) => erased?.answer === "done").length;
    batch.queued += history.sent.filter(({ isQueued }) => isQueued).length;
    for (const outcome of history.outcomes) {
      const { turns, lives, session, journal } = outcome;
      batch.refused += refusedIn({ outcome }).size;
      if (journal.some(({ type }) => type === "conversation.ended")) batch.ended += 1;
      const answers = journal.filter(({ type }) => type === "approval.resolved");
      const approved = answers.filter(({ data }) => JSON.stringify(data).includes('"approved"')).length;
      batch.approved += approved;
      batch.unapproved += answers.length - approved;
      for (const { replay } of outcome.replays) {
        if (replay !== undefined) batch.replayed += 1;
        for (const { reason } of replay?.partial ?? [])
          batch.partial[reason] = (batch.partial[reason] ?? 0) + 1;
      }
      batch.turns += turns.length;
      batch.replaced += turns.filter((turn) => replacedId(turn) !== undefined).length;
      batch.failedTurns += turns.filter(({ status }) => status === "failed").length;
      batch.lives += lives;
      const ends = titlingsOf({ outcome }).flatMap(({ end }) => end ?? []);
      batch.titles += ends.filter(({ type }) => type === "conversation.updated").length;
      batch.summaries += session.filter(({ covers }) => covers !== undefined).length;
    }
  }
  return batch;
}

function emptyTable(): FaultTable {
  const names = PORTS.flatMap((port) => FAULTS_OF[port].map((kind) => faultName({ kind, port })));
  return new Map(names.map((name) => [name, { planned: 0, fired: 0 }]));
}

/** A digest of the run, to the last frame. */
export function fingerprint({ timeline, connections, outcomes }: History): string {
  const text = JSON.stringify([
    timeline,
    connections,
    outcomes.map(({ journal, turns }) => [journal, turns]),
  ]);
  return createHash("sha256").update(text).digest("hex");
}

/** Finds the smallest plan that violates one of the same properties. */
export async function shrinkTrial(
  { plan, violations }: Trial,
  variant: Variant | undefined,
  milliseconds: number,
) {
  const properties = new Set(violations.map(({ property }) => property));
  const deadline = performance.now() + milliseconds;
  return shrink(
    plan,
    async (candidate) => {
      const trial = await tryPlan(candidate, variant);
      return trial.violations.some(({ property }) => properties.has(property));
    },
    { reductions, hasTime: () => performance.now() < deadline },
  );
}

/** Describes a failing run: violations, timeline, and faults that did not fire. */
export function reportOf({ plan, history, violations }: Trial): string {
  const fired = new Set(history.fired);
  const idle = plan.faults.filter((fault) => !fired.has(fault));
  return [
    ...violations.map(
      ({ property, detail }) => `VIOLATED ${property}: ${PROPERTIES[property]}\n         ${detail}`,
    ),
    "",
    ...history.timeline,
    "",
    ...idle.map((fault) => `This fault was planned and never came: ${faultName(fault)} number ${fault.nth}.`),
    `Plan (seed ${plan.seed}):`,
    JSON.stringify(plan, null, 2),
  ].join("\n");
}

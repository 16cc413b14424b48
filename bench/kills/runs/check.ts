/**
 * Checks runs of workflows after kills, by their journals and by the desk's counts. Pure.
 *
 * KILLRUN-1  Every run completes. Its journal has no gaps and one end, and each of its fan-ins fires once.
 * KILLRUN-2  Each token ends once. Each node that began has one outcome.
 * KILLRUN-3  A `once` operation reaches the desk at most once, and exactly once if it completed. It fails only if a kill interrupted it,
 *            with `OUTCOME_UNKNOWN`.
 * KILLRUN-4  All other work completes: idempotent tasks under one operation id, sub-workflows, agents.
 * KILLRUN-5  `fanIn` and the merge agree: `failed` has the branches of unknown outcome, and the merge has all other branches, in order.
 */
import { z } from "zod";
import type { DeskHit, EndedRun, RunsHistory } from "./history.ts";

const END = /^token\.(?:completed|failed|cancelled)$/;
const OUTCOME = /^task\.(?:completed|failed)$/;
const LAST = /^workflow\.(?:completed|failed|cancelled|timed_out)$/;

const inputSchema = z.object({
  calls: z.array(z.string()),
  pairs: z.array(z.object({ call: z.string() })).default([]),
  messages: z.array(z.string()).default([]),
});
const outputSchema = z.object({
  calls: z.array(z.string()),
  fanIn: z.object({
    total: z.int(),
    completed: z.int(),
    failed: z.array(z.object({ branchIndex: z.int(), error: z.object({ code: z.string() }) })),
  }),
});
const dataSchema = z.object({
  fanOut: z.int().optional(),
  branch: z.int().optional(),
  error: z.object({ code: z.string(), message: z.string().optional() }).optional(),
  input: z.object({ call: z.string().optional() }).optional(),
});

/** Returns the violations of a history, in words. */
export function checkRuns({ runs, hits, kills }: RunsHistory): string[] {
  const all = runs.flatMap((run) => [run, ...run.below]);
  const byCall = Map.groupBy(hits, ({ call }) => call);
  return [
    ...repeated(hits, kills.length),
    ...runs.flatMap(({ view, below }) => {
      const { pairs } = inputSchema.parse(view.input);
      return pairs.length === below.length
        ? []
        : [`KILLRUN-4 ${view.id} has ${below.length} runs below it, and ${pairs.length} sub-workflows`];
    }),
    ...all.flatMap((run) =>
      [...ends(run), ...outcomes(run), ...operations(run, byCall), ...fanIn(run)].map((what) => {
        const [rule = "", ...words] = what.split(" ");
        return `${rule} ${run.view.id}: ${words.join(" ")}`;
      }),
    ),
  ];
}

/** Returns the missing events. The kills must cause each of them, or they prove too little. */
export function missingInRuns({ runs, hits, kills }: RunsHistory): string[] {
  const all = runs.flatMap((run) => [run, ...run.below]);
  const journal = all.flatMap((run) => run.journal);
  const counts = Map.groupBy(hits, ({ operationId }) => operationId);
  const isWithin = (at: number) =>
    runs.some((run) => {
      const timeOf = (type: string) =>
        Date.parse(run.journal.findLast((entry) => entry.type === type)?.time ?? "");
      return timeOf("fan_out.started") < at && at < timeOf("fan_in.completed");
    });
  const kinds: [boolean, string][] = [
    [journal.some(({ type }) => type === "task.lost"), "`once` task that was lost"],
    [
      journal.some(({ type, node }) => type === "task.completed" && node === "charge"),
      "`once` task that completed",
    ],
    [[...counts.values()].some((own) => own.length > 1), "idempotent task that ran again"],
    [kills.length > 0 && kills.every(({ at }) => isWithin(at)), "kill within a fan-out each time"],
  ];
  return kinds.flatMap(([isThere, what]) => (isThere ? [] : [`There was no ${what}.`]));
}

/** Returns operations that reached the desk too often, and operation ids with more than one errand. */
function repeated(hits: readonly DeskHit[], kills: number): string[] {
  const byOperation = Map.groupBy(hits, ({ operationId }) => operationId);
  return [...byOperation].flatMap(([id, own]) => {
    const calls = new Set(own.map(({ call }) => call));
    const isOnce = own.some((hit) => hit.isOnce);
    return [
      ...(isOnce && own.length > 1 ? [`KILLRUN-3 ${id} reached the desk ${own.length} times`] : []),
      ...(!isOnce && own.length > kills + 1 ? [`KILLRUN-4 ${id} reached the desk ${own.length} times`] : []),
      ...(calls.size === 1 ? [] : [`KILLRUN-3 ${id} stands for ${[...calls].join(" and ")}`]),
    ];
  });
}

function ends({ view, journal }: EndedRun): string[] {
  const gap = journal.find(({ seq }, index) => seq !== index + 1);
  const last = journal.filter(({ type }) => LAST.test(type));
  const opened = journal.filter(({ type }) => type === "fan_out.started").length;
  const fired = journal.flatMap(({ type, data }) =>
    type === "fan_in.completed" ? [dataSchema.parse(data).fanOut] : [],
  );
  return [
    ...(view.status === "completed" ? [] : [`KILLRUN-1 it is ${view.status}`]),
    ...(view.active.length === 0 ? [] : [`KILLRUN-1 ${view.active.length} tokens are active`]),
    ...(gap === undefined ? [] : [`KILLRUN-1 its journal has a gap before ${gap.seq}`]),
    ...(last.length === 1 && last[0]?.seq === view.seq ? [] : [`KILLRUN-1 it has ${last.length} ends`]),
    ...(fired.length === opened && new Set(fired).size === fired.length
      ? []
      : [`KILLRUN-1 its fan-ins fired ${fired.length} times for ${opened} fan-outs`]),
  ];
}

function outcomes({ journal }: EndedRun): string[] {
  const count = (token: number | undefined, types: RegExp) =>
    journal.filter((entry) => entry.token === token && types.test(entry.type)).length;
  return journal.flatMap(({ type, token }) => {
    if (type !== "token.created" && type !== "task.dispatched") return [];
    const found = count(token, type === "token.created" ? END : OUTCOME);
    return found === 1
      ? []
      : [`KILLRUN-2 token ${token} has ${found} ${type === "token.created" ? "ends" : "outcomes"}`];
  });
}

function operations({ journal }: EndedRun, hits: ReadonlyMap<string, readonly DeskHit[]>): string[] {
  const lost = new Set(journal.flatMap(({ type, token }) => (type === "task.lost" ? [token] : [])));
  const callOf = new Map(
    journal.flatMap(({ type, token, data }) =>
      type === "task.dispatched" ? [[token, dataSchema.parse(data ?? {}).input?.call ?? ""] as const] : [],
    ),
  );
  return journal.flatMap(({ type, token, node, data }) => {
    if (!OUTCOME.test(type)) return [];
    const { code, message } = dataSchema.parse(data ?? {}).error ?? {};
    const own = (hits.get(callOf.get(token) ?? "") ?? []).filter(
      ({ isOnce }) => isOnce === (node === "charge"),
    );
    const ids = new Set(own.map(({ operationId }) => operationId));
    const what = `${node} of token ${token}`;
    const isTask = node === "charge" || node === "look";
    return [
      ...(code === undefined || node === "charge"
        ? []
        : [`KILLRUN-4 ${what} failed with ${code}${message === undefined ? "" : `: ${message}`}`]),
      ...(code === undefined || node !== "charge" || (code === "OUTCOME_UNKNOWN" && lost.has(token))
        ? []
        : [`KILLRUN-3 ${what} failed with ${code}`]),
      ...(isTask && ids.size > 1 ? [`KILLRUN-3 ${what} has ${ids.size} operations`] : []),
      ...(isTask && code === undefined && ids.size === 0
        ? [`KILLRUN-3 ${what} completed, and never reached the desk`]
        : []),
    ];
  });
}

function fanIn({ view, journal }: EndedRun): string[] {
  const { calls, pairs, messages } = inputSchema.parse(view.input);
  const branches = [...calls, ...pairs.map(({ call }) => call), ...messages];
  const branchOf = new Map(
    journal.flatMap(({ type, token, data }) =>
      type === "token.created" ? [[token, dataSchema.parse(data ?? {}).branch] as const] : [],
    ),
  );
  const failed = journal.flatMap(({ type, token }) =>
    type === "task.failed" ? [branchOf.get(token) ?? -1] : [],
  );
  const parsed = outputSchema.safeParse(view.output);
  if (!parsed.success) return ["KILLRUN-5 it has no output of its fan-in"];
  const { fanIn: joined, calls: merged } = parsed.data;
  const indexes = joined.failed.map(({ branchIndex }) => branchIndex);
  const expected = branches.filter((_, index) => !failed.includes(index));
  const codes = new Set(joined.failed.map(({ error }) => error.code));
  codes.delete("OUTCOME_UNKNOWN");
  const isCounted =
    joined.total === branches.length && joined.completed === branches.length - joined.failed.length;
  return [
    ...(isCounted ? [] : [`KILLRUN-5 it joined ${joined.completed} of ${joined.total} branches`]),
    ...(indexes.join() === failed.toSorted((a, b) => a - b).join()
      ? []
      : [`KILLRUN-5 branches ${indexes.join()} are reported as failed instead of ${failed.join()}`]),
    ...[...codes].map((code) => `KILLRUN-5 a branch is reported with ${code}`),
    ...(merged.join() === expected.join() ? [] : [`KILLRUN-5 its merge differs from its branches`]),
  ];
}

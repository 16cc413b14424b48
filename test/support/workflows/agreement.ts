/** Compares a run's journal with the reference interpreter in the same order. */
import type { RunState } from "../../../src/agents/coordinator/core/state.ts";
import type { RunEntry } from "../../../src/protocol/workflow-run.ts";
import { isJsonObject, type Json } from "../../../src/shared/json.ts";
import { run } from "./interpreter.ts";
import type { Choice, RunResult, TaskOutcome } from "./run.ts";

/**
 * A step of a run: a task that ended, or the time of a fan-in. A step that comes `together` with the previous step is
 * taken before any node of that step runs.
 */
type Taken = { task: number; together: boolean } | { fanOut: number; together: false };

/**
 * Returns the entries of a journal as if retried work had not failed: without the ends of tokens and of fan-in waits
 * that a later retry has reverted.
 */
function withoutRetried(entries: readonly RunEntry[]): RunEntry[] {
  const last = new Map<string, number>();
  for (const [index, { type, data }] of entries.entries()) {
    if (type !== "workflow.retried" || !isJsonObject(data)) continue;
    for (const token of [data.tokens].flat()) last.set(`token ${token}`, index);
    for (const fanOut of [data.fanOuts].flat()) last.set(`fan-out ${fanOut}`, index);
  }
  return entries.filter(({ type, token, data }, index) => {
    const fanOut = isJsonObject(data) ? data.fanOut : undefined;
    const name = type === "sync.timeout" ? `fan-out ${fanOut}` : `token ${token}`;
    const isEnd = ["task.completed", "task.failed", "sync.timeout"].includes(type);
    return !isEnd || index > (last.get(name) ?? -1);
  });
}

/** Entries that end the work of a node. */
const OUTCOMES: ReadonlySet<string> = new Set([
  "task.completed",
  "task.failed",
  "gate.answered",
  "gate.expired",
]);

/** Runs the reference interpreter through the steps of a journal. */
function replayed({ record }: RunState, entries: readonly RunEntry[]): RunResult {
  const { definition } = record.workflow;
  const owners = new Map(
    definition.nodes.map(({ ref, task, workflow, agent }) => [ref, task ?? workflow ?? agent]),
  );
  const paths = new Map<number, string>();
  const outcomes = new Map<string, TaskOutcome[]>();
  const left: Taken[] = [];
  const before = new Map(entries.map((entry, index) => [entry, entries[index - 1]]));
  let newest: RunEntry | null = null;
  for (const entry of withoutRetried(entries)) {
    const { type, token = -1, node = "", data } = entry;
    const members = isJsonObject(data) ? data : {};
    if (type === "token.created") paths.set(token, String(members.path ?? "root"));
    if (type === "sync.timeout") left.push({ fanOut: Number(members.fanOut), together: false });
    // Without a token it is the run that asks for more time.
    if (!OUTCOMES.has(type) || token === -1) continue;
    // The outcomes of tasks that are lost at the same time are next to each other.
    left.push({ task: token, together: before.get(entry) === newest });
    newest = entry;
    const key = `${node} ${paths.get(token)}`;
    const own = outcomes.get(key) ?? [];
    outcomes.set(key, own);
    own.push(
      members.error === undefined
        ? { output: (type === "gate.answered" ? members.answer : members.output) ?? null }
        : { failure: errorOf(members.error) },
    );
  }
  return run(definition, record.input, {
    taskOutcome: (node, path, attempt) => outcomes.get(`${node} ${path}`)?.[attempt] ?? { output: null },
    pick(choices: readonly Choice[]) {
      // Nodes without a task are passed at once, in the order of their tokens.
      const passing = choices.findIndex((one) => one.kind === "task" && owners.get(one.node) === undefined);
      while (passing < 0 || left[0]?.together) {
        const next = left.shift();
        if (next === undefined) return 0;
        const { task, fanOut } = { task: -1, fanOut: -1, ...next };
        const at = choices.findIndex((one) =>
          one.kind === "task" ? one.token === task : one.fanOut === fanOut,
        );
        if (at >= 0) return at;
      }
      return passing;
    },
  });
}

function errorOf(error: Json | undefined): { code: string; message: string } {
  const { code = "", message = "" } = isJsonObject(error) ? error : {};
  return { code: String(code), message: String(message) };
}

/** Returns the differences between a finished run and the reference interpreter, which has no time limit. */
export function differences(state: RunState, entries: readonly RunEntry[]): string[] {
  if (state.status === "timed_out" || state.status === "cancelled") return broken(state, entries);
  const expected = replayed(state, entries);
  const found: string[] = [];
  const compare = (what: string, actual: unknown, wanted: unknown) => {
    const [one, other] = [JSON.stringify(actual ?? null), JSON.stringify(wanted ?? null)];
    if (one !== other) found.push(`${what}: ${one} instead of ${other}`);
  };
  const isTooLong = expected.error?.code === "RUN_TOO_LONG";
  compare("status", state.status, isTooLong ? "failed" : expected.status);
  compare("error", state.error?.code, expected.error?.code);
  compare("open", [state.tokens.size, state.fanOuts.size, state.root.active], [0, 0, 0]);
  if (state.status !== "failed") compare("stopped", state.stopped, undefined);
  if (isTooLong) return found;
  compare("tokens", state.made.tokens, expected.tokens);
  compare("state", sorted(state.state), sorted(expected.state));
  if (state.status === "completed") compare("output", sorted(state.output ?? {}), sorted(expected.output));
  return [...found, ...broken(state, entries)];
}

/** Returns impossible facts of a journal: tokens without exactly one end, fan-ins that fire twice. */
function broken({ made, tokens, fanOuts, root }: RunState, entries: readonly RunEntry[]): string[] {
  const found = tokens.size + fanOuts.size + root.active === 0 ? [] : ["It is over, and something is open."];
  const ends = new Map<number, number>();
  const arrived = new Set<number>();
  const completed = new Set<number>();
  const fired = new Set<string>();
  for (const { type, token = -1, data } of entries) {
    if (type === "token.created") ends.set(token, 0);
    if (type === "token.waiting") arrived.add(token);
    if (["token.completed", "token.failed", "token.cancelled"].includes(type))
      ends.set(token, (ends.get(token) ?? 9) + 1);
    if (type === "workflow.retried" && isJsonObject(data))
      for (const one of [data.tokens].flat()) ends.set(Number(one), (ends.get(Number(one)) ?? 9) - 1);
    if (type === "token.completed") {
      if (completed.has(token)) found.push(`Token ${token} completes twice.`);
      completed.add(token);
    }
    const fanOut = isJsonObject(data) ? JSON.stringify(data.fanOut) : "";
    if (type === "fan_in.completed" && fired.has(fanOut)) found.push(`The fan-in of ${fanOut} fires twice.`);
    if (type === "fan_in.completed") fired.add(fanOut);
  }
  for (const [token, count] of ends) if (count !== 1) found.push(`Token ${token} ends ${count} times.`);
  if (ends.size + arrived.size !== made.tokens)
    found.push(`${ends.size + arrived.size} tokens of ${made.tokens}.`);
  return found;
}

function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isJsonObject(value)) return value;
  const members = Object.entries(value).map(([name, member]): [string, Json] => [name, sorted(member)]);
  return Object.fromEntries(members.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** Returns the tokens with attempts that have different inputs. Leaves out gates, which make their question again. */
export function changedInputs(entries: readonly RunEntry[]): string[] {
  const gates = new Set(entries.flatMap(({ type, token }) => (type === "gate.opened" ? [token] : [])));
  const inputs = new Map<number, string>();
  return entries.flatMap(({ type, token = -1, data }) => {
    if (type !== "task.dispatched" || gates.has(token)) return [];
    const input = JSON.stringify(isJsonObject(data) ? (data.input ?? null) : null);
    const before = inputs.get(token) ?? input;
    inputs.set(token, input);
    return before === input ? [] : [`Token ${token} begins with ${input}, and has begun with ${before}.`];
  });
}

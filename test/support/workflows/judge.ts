/**
 * Judges the soundness check by runs. The check is wrong if it accepts a workflow that can fail. It is also wrong if it
 * refuses a workflow with runs that all succeed and together use every node, transition and fan-in.
 */
import { soundnessIssues } from "../../../src/library/workflows/soundness/check.ts";
import type { WorkflowDefinition } from "../../../src/protocol/workflow-definition.ts";
import type { InputIssue } from "../../../src/shared/errors.ts";
import { Random } from "../../../src/testing/random.ts";
import { run } from "./interpreter.ts";
import type { Choice, Decisions, RunResult, Violation } from "./run.ts";

/** The effort of judging one workflow. */
export interface Effort {
  /** Number of runs of an accepted workflow, and of runs to disprove that an element is unused. */
  runs: number;
  /** Number of runs of a refused workflow in search of a failure. */
  witnesses: number;
}

/** The verdict of the runs about one workflow. */
export interface Verdict {
  isAccepted: boolean;
  /** Why the check is wrong; `null` if the runs agree with it. */
  problem: string | null;
  /** The proof of the verdict. `witness`: a run failed. `unused`: the runs left an element unused. */
  proof: "accepted" | "witness" | "unused" | "unread";
  rules: string[];
  /** Runs that reached the limit of tokens. They are inconclusive. */
  tooLong: number;
}

/** Violations that each rule foresees. */
const FORESEEN: Readonly<Record<string, readonly Violation["kind"][]>> = {
  "SOUND-4": ["apart"],
  "SOUND-5": ["crossed", "repeated", "deep"],
  "SOUND-6": ["endless"],
  "SOUND-7": ["state-in-branch"],
};

const MAX_TOKENS = 1_500;

export function judge(
  definition: WorkflowDefinition,
  seed: number,
  { runs, witnesses }: Effort,
  check: (definition: WorkflowDefinition) => InputIssue[] = (one) => soundnessIssues(one, () => null),
): Verdict {
  const issues = check(definition);
  const rules = [...new Set(issues.map(({ message }) => message.slice(0, message.indexOf(":"))))];
  const seen = new Seen();
  const verdict = { isAccepted: issues.length === 0, rules };
  const foreseen = rules.flatMap((rule) => FORESEEN[rule] ?? []);
  const most = issues.length === 0 ? runs : witnesses;
  const bounds = { tokens: MAX_TOKENS, hops: hopsOf(definition) };
  for (let index = 0; index < most; index++) {
    const result = run(
      definition,
      { a: "a" },
      decisions(new Random(seed).fork(`run ${index}`), index),
      bounds,
    );
    seen.add(result);
    const wrong = wrongIn(result);
    const answer = { ...verdict, tooLong: seen.tooLong };
    if (issues.length === 0 && wrong !== null)
      return { ...answer, proof: "accepted", problem: `Run ${index} of an accepted workflow: ${wrong}` };
    const [contradiction] = issues.flatMap((issue) => seen.contradicts(definition, issue) ?? []);
    if (contradiction !== undefined)
      return { ...answer, proof: "unused", problem: `Run ${index} contradicts: ${contradiction}` };
    const kinds = result.violations.map(({ kind }) => kind);
    const isOther = kinds.some((kind) => !foreseen.includes(kind));
    if (isOther && !rules.some((rule) => /^SOUND-[1-7]$/.test(rule)))
      return { ...answer, proof: "witness", problem: `Run ${index} goes wrong in another way: ${wrong}` };
    if (index >= runs && kinds.length > 0) return { ...answer, proof: "witness", problem: null };
    // If the check only claims that elements are unused, `runs` runs suffice.
    if (index >= runs && foreseen.length === 0) break;
  }
  const answer = { ...verdict, tooLong: seen.tooLong };
  if (issues.length === 0) return { ...answer, proof: "accepted", problem: null };
  if (seen.kinds.size > 0) return { ...answer, proof: "witness", problem: null };
  if (seen.unused(definition)) return { ...answer, proof: "unused", problem: null };
  if (rules.includes("SOUND-8")) return { ...answer, proof: "unread", problem: null };
  const messages = issues.map(({ path, message }) => `${path}: ${message}`).join("\n");
  return { ...answer, proof: "unused", problem: `All runs of a refused workflow go well:\n${messages}` };
}

/** The events in the runs of one workflow. */
class Seen {
  readonly kinds = new Set<string>();
  tooLong = 0;
  readonly #things = new Set<string>();

  add({ trace, violations, error }: RunResult): void {
    if (error?.code === "RUN_TOO_LONG") this.tooLong += 1;
    for (const { kind } of violations) this.kinds.add(kind);
    const makers = new Map<number, string | null>();
    for (const entry of trace) {
      if (entry.type === "created") makers.set(entry.token, entry.by);
      if (entry.type === "completed" || entry.type === "failed" || entry.type === "arrived") {
        this.#things.add(`node ${entry.node}`);
        // A token that is cancelled before its node runs is of no use.
        this.#things.add(`transition ${makers.get(entry.token)}`);
      }
      if (entry.type === "arrived") this.#things.add(`arrival ${entry.transition}`);
      if (entry.type === "fan_in" && entry.completed.length > 0)
        this.#things.add(`fan-in ${entry.origin} ${entry.group}`);
      if (entry.type === "read" && entry.isFound) this.#things.add(`read ${entry.at} ${entry.path}`);
    }
  }

  /** Returns the event that contradicts an issue, if any. */
  contradicts({ nodes, transitions }: WorkflowDefinition, { path, message }: InputIssue): string | null {
    const [, list, index] = /^\/(nodes|transitions)\/(\d+)/.exec(path) ?? [];
    const node = list === "nodes" ? nodes[Number(index)]?.ref : undefined;
    const transition = list === "transitions" ? transitions[Number(index)] : undefined;
    const [, origin] = /but node "(\w+)" starts/.exec(message) ?? [];
    const [, read] = /reads `([^`]+)`/.exec(message) ?? [];
    const denied =
      {
        "SOUND-1": `node ${node}`,
        "SOUND-2": `transition ${transition?.ref}`,
        "SOUND-3":
          origin === undefined
            ? `arrival ${transition?.ref}`
            : `fan-in ${origin} ${transition?.synchronization?.siblingGroup}`,
        "SOUND-8": `read ${path} ${read}`,
      }[message.slice(0, message.indexOf(":"))] ?? "";
    return this.#things.has(denied) ? `${denied}, but: ${message}` : null;
  }

  /** Reports whether a node, a transition or a fan-in was not used in any run. */
  unused({ nodes, transitions }: WorkflowDefinition): boolean {
    const wanted = [
      ...nodes.map(({ ref }) => `node ${ref}`),
      ...transitions.map(({ ref }) => `transition ${ref}`),
      ...transitions.flatMap(({ ref, synchronization }) =>
        synchronization === undefined ? [] : [`arrival ${ref}`],
      ),
    ];
    return wanted.some((thing) => !this.#things.has(thing)) || this.#missesFanIn();
  }

  #missesFanIn(): boolean {
    const joined = [...this.#things].filter((thing) => thing.startsWith("arrival "));
    return joined.length > 0 && ![...this.#things].some((thing) => thing.startsWith("fan-in "));
  }
}

/** Returns the failure of a run, if any. */
function wrongIn({ status, violations, trace, error }: RunResult): string | null {
  if (violations.length > 0) return JSON.stringify(violations);
  if (error?.code === "RUN_TOO_LONG") return null;
  const allowed = ["TASK_FAILED", "SYNC_TIMEOUT", "SYNC_UNSATISFIABLE"];
  if (error !== null && !allowed.includes(error.code)) return JSON.stringify(error);
  if (status === "failed") return null;
  if (status !== "completed") return `It is ${status}.`;
  const ends = new Map<number, number>();
  for (const entry of trace) {
    if (entry.type === "created") ends.set(entry.token, 0);
    if (entry.type === "completed" || entry.type === "failed" || entry.type === "cancelled")
      ends.set(entry.token, (ends.get(entry.token) ?? 0) + 1);
  }
  const [wrong] = [...ends].find(([, count]) => count !== 1) ?? [];
  if (wrong !== undefined) return `Token ${wrong} has ended ${ends.get(wrong)} times.`;
  const fanIns = trace.flatMap((entry) => (entry.type === "fan_in" ? [entry.fanOut] : []));
  return new Set(fanIns).size < fanIns.length ? "A fan-in has fired twice." : null;
}

/** Returns more hops than a token can make in a workflow with bounded loops. */
function hopsOf({ nodes, transitions }: WorkflowDefinition): number {
  const iterations = transitions.reduce((sum, { loopConfig }) => sum + (loopConfig?.maxIterations ?? 0), 0);
  const groups = new Set(transitions.flatMap(({ siblingGroup }) => siblingGroup ?? [])).size;
  return (iterations + 1) * (nodes.length + 1) * (groups + 1);
}

/** Returns the decisions of a run: independent or repeated outcomes; any, the first or the last token first. */
function decisions(random: Random, index: number): Decisions {
  const isSticky = index % 2 === 1;
  const failing = index % 4 === 3 ? 0.15 : 0;
  const likely = random.pick([0.15, 0.5, 0.5, 0.85]);
  const order = random.pick(["any", "any", "last", "first"] as const);
  const kept = new Map<string, ReturnType<Decisions["taskOutcome"]>>();
  const make = (): ReturnType<Decisions["taskOutcome"]> => {
    if (random.chance(failing)) return { failure: { code: "TASK_FAILED", message: "Failed." } };
    const flags = random.list(6, (at) => [`c${at}`, random.chance(likely)] as const);
    const items = random.list(random.int(0, 3), (at) => at);
    return { output: { ...Object.fromEntries(flags), items, v: random.pick([1, [1, 2], {}]) } };
  };
  return {
    taskOutcome(node) {
      const outcome = (isSticky ? kept.get(node) : undefined) ?? make();
      kept.set(node, outcome);
      return outcome;
    },
    pick(choices: readonly Choice[]) {
      if (order === "any") return random.int(0, choices.length - 1);
      const tasks = choices.filter(({ kind }) => kind === "task").length;
      return order === "first" || tasks === 0 ? 0 : tasks - 1;
    },
  };
}

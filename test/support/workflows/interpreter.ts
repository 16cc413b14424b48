/**
 * The reference interpreter of workflows, for tests: sequential, without actors. It has the same semantics as the
 * Coordinator, so that runs of both can be compared.
 *
 * A branch is finished when all its tokens have ended or wait at its fan-in. Fan-ins are checked after each arrival,
 * end and failure. A failure counts for the innermost branch with a fan-in that waits, and cancels the other tokens of
 * that branch. Without such a branch it fails the run.
 */
import { isDeepStrictEqual } from "node:util";
import { findMeetings, type Meetings } from "../../../src/library/workflows/soundness/meetings.ts";
import type { WorkflowDefinition, WorkflowTransition } from "../../../src/protocol/workflow-definition.ts";
import { readsOf } from "../../../src/shared/expressions/reads.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../src/shared/json.ts";
import { jsonPointer } from "../../../src/shared/validation.ts";
import type {
  Bounds,
  Choice,
  Counts,
  Decisions,
  FanOutInstance,
  RunError,
  RunResult,
  Scope,
  TaskOutcome,
  Token,
  TraceEntry,
  Violation,
} from "./run.ts";
import { evaluate, initialState, merged, overlaid, written } from "./values.ts";

const MAX_DEPTH = 8;

/** Runs a workflow to its end. `taskOutcome` and `pick` make the external decisions. */
export function run(
  definition: WorkflowDefinition,
  input: Json,
  decisions: Decisions,
  bounds: Bounds = {},
): RunResult {
  return new Run(definition, input, decisions, bounds).finish();
}

/** A failure of a token. */
class Failure extends Error {
  constructor(readonly error: RunError) {
    super(error.message);
  }
}

/** A token that is about to be made. */
type NewToken = Pick<Token, "node" | "scope" | "counts" | "hops"> &
  Partial<Pick<Token, "items" | "fanIn">> & { by?: WorkflowTransition };

/** Ends the run at once. */
class Stop extends Error {}

class Run {
  readonly #trace: TraceEntry[] = [];
  readonly #violations: Violation[] = [];
  readonly #tokens: Token[] = [];
  readonly #open: FanOutInstance[] = [];
  readonly #attempts = new Map<string, number>();
  readonly #nodes: Map<string, WorkflowDefinition["nodes"][number] & { base: string }>;
  readonly #meetings: Meetings;
  readonly #joined = new Set<string>();
  readonly #root: Scope = scopeOf(null, 0, "root");
  #count = 0;
  #fanOuts = 0;
  #state: Json;
  #error: RunError | null = null;

  constructor(
    private readonly definition: WorkflowDefinition,
    private readonly input: Json,
    private readonly decisions: Decisions,
    private readonly bounds: Bounds,
  ) {
    this.#nodes = new Map(
      definition.nodes.map((node, index) => [node.ref, { ...node, base: `/nodes/${index}` }]),
    );
    this.#state = initialState(definition);
    this.#meetings = meetingsOf(definition);
  }

  finish(): RunResult {
    let status: RunResult["status"] = "completed";
    try {
      this.#create({ node: this.definition.initialNode, scope: this.#root, counts: {}, hops: 0 });
      while (this.#root.active > 0 && this.#error === null) this.#step();
      if (this.#error !== null) status = "failed";
    } catch (error) {
      if (!(error instanceof Stop)) throw error;
      status = this.#violations.some(({ kind }) => kind === "stalled") ? "stalled" : "unfinished";
    }
    return {
      status,
      output: status === "completed" ? this.#result() : {},
      state: this.#state,
      error: this.#error,
      tokens: this.#count,
      trace: this.#trace,
      violations: this.#violations,
    };
  }

  #step(): void {
    const choices: Choice[] = [
      ...this.#tokens.map(({ id, node }): Choice => ({ kind: "task", token: id, node })),
      ...this.#open
        .filter(({ meeting, hasArrival }) => hasArrival && meeting?.synchronization.timeoutMs !== undefined)
        .map(({ id }): Choice => ({ kind: "timeout", fanOut: id })),
    ];
    if (choices.length === 0) {
      this.#violations.push({ kind: "stalled" });
      throw new Stop();
    }
    const choice = choices[this.decisions.pick?.(choices) ?? 0];
    const fanOut = choice?.kind === "timeout" && this.#open.find(({ id }) => id === choice.fanOut);
    if (fanOut) this.#timeOut(fanOut);
    if (choice?.kind !== "task") return;
    const token = this.#tokens.find(({ id }) => id === choice?.token);
    if (token !== undefined) this.#advance(token);
  }

  /** Runs the node of a token, then follows the transitions. */
  #advance(token: Token): void {
    let touched: readonly FanOutInstance[];
    try {
      this.#write(token, this.#runNode(token));
      touched = this.#route(token);
    } catch (error) {
      const failure = failureOf(error);
      this.#trace.push({ type: "failed", token: token.id, node: token.node });
      this.#end(token);
      this.#fail(token.scope, failure);
      return;
    }
    this.#trace.push({ type: "completed", token: token.id, node: token.node });
    this.#end(token);
    for (const fanOut of touched) this.#consider(fanOut);
    this.#release(token.scope);
  }

  #runNode(token: Token): Json | undefined {
    const node = this.#nodes.get(token.node);
    const owner = node?.task ?? node?.workflow ?? node?.agent;
    if (node === undefined || owner === undefined) return undefined;
    const variables = this.#variables(token, token.items);
    const input =
      node.inputMapping === undefined
        ? this.input
        : this.#mapped(`${node.base}/inputMapping`, node.inputMapping, variables);
    const { path } = token.scope;
    const attempt = this.#attempts.get(`${token.node} ${path}`) ?? 0;
    this.#attempts.set(`${token.node} ${path}`, attempt + 1);
    const outcome: TaskOutcome = this.decisions.taskOutcome(token.node, path, attempt, input);
    if ("failure" in outcome) throw new Failure(outcome.failure);
    return outcome.output;
  }

  #write({ node: ref, scope, items, fanIn }: Token, result: Json | undefined): void {
    const node = this.#nodes.get(ref);
    if (node?.outputMapping === undefined) {
      if (scope.fanOut !== null && result !== undefined) scope.output = result;
      return;
    }
    const own = { ...items, ...defaulted("result", result) };
    const variables = this.#variables({ scope, fanIn }, own);
    const values = this.#mapped(`${node.base}/outputMapping`, node.outputMapping, variables);
    for (const [path, value] of Object.entries(values)) this.#set(scope, path, value, ref);
  }

  #set(scope: Scope, path: string, value: Json, at: string): void {
    const [area, ...names] = path.split(".");
    if (area === "state") {
      if (scope.fanOut !== null) this.#violations.push({ kind: "state-in-branch", at });
      this.#state = written(this.#state, names, value);
      return;
    }
    scope.output = written(isJsonObject(scope.output) ? scope.output : {}, names, value);
  }

  /** Fires the transitions of the first priority that has any to fire. Returns the fan-outs with fan-ins to check. */
  #route(token: Token): FanOutInstance[] {
    const own = this.definition.transitions.filter(({ from }) => from === token.node);
    const priorities = [...new Set(own.map(({ priority }) => priority))].sort((one, other) => one - other);
    for (const priority of priorities) {
      const tier = own.filter((one) => one.priority === priority);
      const firing = tier.filter((one) => this.#fires(token, one));
      if (firing.length > 0) return this.#fire(token, firing);
    }
    return [];
  }

  #fires(token: Token, transition: WorkflowTransition): boolean {
    const { condition, loopConfig, ref } = transition;
    const isUsedUp = loopConfig !== undefined && (token.counts[ref] ?? 0) >= loopConfig.maxIterations;
    if (condition !== undefined) {
      const value = this.#evaluated(
        `${this.#baseOf(transition)}/condition`,
        condition,
        this.#variables(token),
      );
      if (typeof value !== "boolean")
        throw new Failure({ code: "INVALID_INPUT", message: `The condition of "${ref}" is no boolean.` });
      if (!value) return false;
    }
    if (isUsedUp) this.#trace.push({ type: "loop_limit_reached", transition: ref });
    else this.#checkNesting(token, transition);
    return !isUsedUp;
  }

  /** Notes transitions that mix up fan-outs, which a sound workflow does not have. */
  #checkNesting({ scope }: Token, { ref, siblingGroup, synchronization }: WorkflowTransition): void {
    const around = [...scopesAround(scope)].flatMap(({ fanOut }) => fanOut ?? []);
    const groups = around.map(({ group }) => group);
    const report = (kind: "crossed" | "repeated" | "deep") => {
      this.#violations.push({ kind, transition: ref });
      throw new Stop();
    };
    if (siblingGroup !== undefined && groups.includes(siblingGroup)) report("repeated");
    if (siblingGroup !== undefined && groups.length >= MAX_DEPTH) report("deep");
    const joined = synchronization?.siblingGroup;
    if (joined !== undefined && groups[0] !== joined && groups.includes(joined)) report("crossed");
  }

  #fire(token: Token, firing: readonly WorkflowTransition[]): FanOutInstance[] {
    const spawned = firing.map((transition) => ({ transition, items: this.#itemsOf(token, transition) }));
    for (const { transition, items } of spawned)
      this.#trace.push({ type: "fired", transition: transition.ref, tokens: items.length });
    const groups = [...Map.groupBy(spawned, ({ transition }) => transition.siblingGroup ?? null)];
    return groups.flatMap(([group, own]) =>
      group === null
        ? own.flatMap(({ transition, items }) => this.#followEach(token, transition, items))
        : this.#fanOut(token, group, own),
    );
  }

  /** Returns the variables of each token that a transition makes. */
  #itemsOf(token: Token, transition: WorkflowTransition): JsonObject[] {
    const { ref, foreach, spawnCount = 1 } = transition;
    if (foreach === undefined) return Array.from({ length: spawnCount }, () => ({}));
    const list = this.#evaluated(
      `${this.#baseOf(transition)}/foreach/collection`,
      foreach.collection,
      this.#variables(token),
    );
    if (!Array.isArray(list))
      throw new Failure({ code: "INVALID_INPUT", message: `The collection of "${ref}" is no list.` });
    return list.map((item) => ({ [foreach.itemVar]: item }));
  }

  #followEach(token: Token, transition: WorkflowTransition, items: readonly JsonObject[]): FanOutInstance[] {
    const counts = counted(token.counts, [transition]);
    const { synchronization, to } = transition;
    const { fanOut } = token.scope;
    return items.flatMap((own) => {
      const child = this.#create({
        node: to,
        scope: token.scope,
        counts,
        hops: token.hops + 1,
        items: own,
        by: transition,
      });
      if (synchronization === undefined || fanOut?.group !== synchronization.siblingGroup) return [];
      this.#arrive(child, fanOut, transition);
      return [fanOut];
    });
  }

  #fanOut(
    token: Token,
    group: string,
    own: readonly { transition: WorkflowTransition; items: readonly JsonObject[] }[],
  ): FanOutInstance {
    const transitions = own.map(({ transition }) => transition);
    const total = own.reduce((sum, { items }) => sum + items.length, 0);
    const fanOut: FanOutInstance = {
      id: this.#fanOuts++,
      group,
      origin: token.node,
      outer: token.scope,
      branches: [],
      meeting: meetingAt(this.#meetings(token.node, group)),
      counts: counted(token.counts, transitions),
      hops: token.hops + 1,
      isOpen: true,
      hasArrival: false,
    };
    this.#trace.push({ type: "fan_out", fanOut: fanOut.id, group, origin: token.node, total });
    this.#open.push(fanOut);
    token.scope.active += 1;
    for (const { transition, items } of own)
      for (const item of items) {
        const index = fanOut.branches.length;
        const path = total > 1 ? `${token.scope.path}.${token.node}.${index}` : token.scope.path;
        const scope = scopeOf(fanOut, index, path);
        fanOut.branches.push(scope);
        const counts = counted(token.counts, [transition]);
        this.#create({
          node: transition.to,
          scope,
          counts,
          hops: token.hops + 1,
          items: item,
          by: transition,
        });
      }
    return fanOut;
  }

  #arrive(token: Token, fanOut: FanOutInstance, transition: WorkflowTransition): void {
    const { meeting } = fanOut;
    const isSame =
      meeting?.target === transition.to &&
      isDeepStrictEqual(meeting.synchronization, transition.synchronization);
    if (!isSame) {
      this.#violations.push({ kind: "apart", transition: transition.ref });
      throw new Stop();
    }
    token.status = "waiting";
    this.#remove(token);
    this.#trace.push({ type: "arrived", token: token.id, node: token.node, transition: transition.ref });
    token.scope.arrivals.push(token);
    token.scope.active -= 1;
    fanOut.hasArrival = true;
  }

  /** Activates the fan-in of a fan-out, or fails it, if its branches decide that. */
  #consider(fanOut: FanOutInstance): void {
    if (!fanOut.isOpen) return;
    const { branches, meeting, hasArrival } = fanOut;
    const failed = branches.filter(({ failure }) => failure !== null).length;
    const finished = branches.filter(({ active, failure }) => active === 0 || failure !== null).length;
    const completed = finished - failed;
    const isOver = finished === branches.length;
    if (meeting === null) {
      if (isOver) this.#close(fanOut);
      return;
    }
    const { strategy, maxFailures = Number.POSITIVE_INFINITY, onTimeout } = meeting.synchronization;
    const needed = typeof strategy === "object" ? strategy.mOfN : Number.POSITIVE_INFINITY;
    const isEnough =
      branches.length === 0 ||
      (strategy === "any" && hasArrival) ||
      completed >= needed ||
      (isOver && typeof strategy === "string" && (completed > 0 || onTimeout === "proceed_with_available"));
    const isHopeless =
      typeof strategy === "object" ? branches.length - failed < needed : isOver && completed === 0;
    if (failed > maxFailures) this.#giveUp(fanOut, "SYNC_UNSATISFIABLE", "Too many branches failed.");
    else if (isEnough) this.#activate(fanOut);
    else if (isHopeless) this.#giveUp(fanOut, "SYNC_UNSATISFIABLE", "Too few branches can complete.");
  }

  #timeOut(fanOut: FanOutInstance): void {
    if (fanOut.meeting?.synchronization.onTimeout === "proceed_with_available") this.#activate(fanOut);
    else this.#giveUp(fanOut, "SYNC_TIMEOUT", "The time of a fan-in is over.");
  }

  /** Merges the completed branches, and continues after the fan-in. */
  #activate(fanOut: FanOutInstance): void {
    const { branches, meeting, outer, group, origin } = fanOut;
    if (meeting === null) return;
    if (this.#joined.has(`${fanOut.id}`)) this.#violations.push({ kind: "fired-twice", fanOut: fanOut.id });
    this.#joined.add(`${fanOut.id}`);
    const { strategy, merge } = meeting.synchronization;
    const isCompleted = ({ active, failure, arrivals }: Scope) =>
      failure === null && (active === 0 || (strategy === "any" && arrivals.length > 0));
    const completed = branches.filter(isCompleted);
    const failed = branches.flatMap(({ index, failure }) =>
      failure === null ? [] : [{ branchIndex: index, error: { ...failure } }],
    );
    this.#cancelBranches(fanOut);
    this.#trace.push({
      type: "fan_in",
      fanOut: fanOut.id,
      group,
      origin,
      target: meeting.target,
      completed: completed.map(({ index }) => index),
    });
    try {
      if (merge !== undefined)
        this.#set(outer, merge.target, merged(merge.strategy, merge.source, completed), `merge of ${group}`);
    } catch (error) {
      const { code, message } = failureOf(error);
      this.#giveUp(fanOut, code, message);
      return;
    }
    const fanIn = { total: branches.length, completed: completed.length, failed };
    this.#create({ node: meeting.target, scope: outer, counts: fanOut.counts, hops: fanOut.hops, fanIn });
    this.#close(fanOut);
  }

  #giveUp(fanOut: FanOutInstance, code: string, message: string): void {
    this.#trace.push({ type: "unsatisfiable", fanOut: fanOut.id });
    this.#cancelBranches(fanOut);
    fanOut.isOpen = false;
    remove(this.#open, fanOut);
    fanOut.outer.active -= 1;
    this.#fail(fanOut.outer, { code, message });
  }

  /** Counts a failure for the innermost branch that a fan-in waits for; without one it is the run's. */
  #fail(scope: Scope, error: RunError): void {
    const counting = [...scopesAround(scope)].find(
      ({ fanOut }) => fanOut === null || fanOut.meeting !== null,
    );
    if (counting === undefined || counting.fanOut === null) {
      this.#error ??= error;
      return;
    }
    counting.failure = error;
    this.#cancelIn(counting);
    this.#consider(counting.fanOut);
  }

  /** Looks at the fan-in of a branch that may be finished. */
  #release(scope: Scope): void {
    if (scope.active === 0 && scope.fanOut !== null && scope.failure === null) this.#consider(scope.fanOut);
  }

  #close(fanOut: FanOutInstance): void {
    fanOut.isOpen = false;
    remove(this.#open, fanOut);
    fanOut.outer.active -= 1;
    this.#release(fanOut.outer);
  }

  #cancelBranches({ branches }: FanOutInstance): void {
    for (const branch of branches) this.#cancelIn(branch);
  }

  #cancelIn(scope: Scope): void {
    for (const token of [...this.#tokens, ...scope.arrivals]) {
      if (token.status === "ended" || ![...scopesAround(token.scope)].includes(scope)) continue;
      const type = token.status === "waiting" ? "completed" : "cancelled";
      this.#trace.push({ type, token: token.id, node: token.node });
      this.#remove(token);
      token.status = "ended";
    }
    for (const fanOut of [...this.#open]) {
      if (![...scopesAround(fanOut.outer)].includes(scope)) continue;
      for (const branch of fanOut.branches)
        for (const token of branch.arrivals)
          if (token.status !== "ended") {
            token.status = "ended";
            this.#trace.push({ type: "cancelled", token: token.id, node: token.node });
          }
      fanOut.isOpen = false;
      remove(this.#open, fanOut);
    }
    scope.active = 0;
  }

  #create({ node, scope, counts, hops, items = {}, fanIn = null, by }: NewToken): Token {
    if (hops > (this.bounds.hops ?? Number.POSITIVE_INFINITY)) {
      this.#violations.push({ kind: "endless", node });
      throw new Stop();
    }
    if (this.#count >= (this.bounds.tokens ?? 10_000)) {
      this.#error = { code: "RUN_TOO_LONG", message: "The run has too many tokens." };
      throw new Stop();
    }
    const token: Token = { id: this.#count++, node, scope, counts, items, fanIn, hops, status: "active" };
    const { path, index, fanOut } = scope;
    this.#trace.push({
      type: "created",
      token: token.id,
      node,
      path,
      group: fanOut?.group ?? null,
      branch: index,
      by: by?.ref ?? null,
    });
    this.#tokens.push(token);
    scope.active += 1;
    return token;
  }

  #end(token: Token): void {
    if (token.status === "ended") return;
    token.status = "ended";
    this.#remove(token);
    token.scope.active -= 1;
  }

  #remove(token: Token): void {
    remove(this.#tokens, token);
  }

  #result(): JsonObject {
    const { outputMapping = {} } = this.definition;
    const variables = { input: this.input, state: this.#state, output: this.#root.output };
    try {
      return this.#mapped("/outputMapping", outputMapping, variables);
    } catch (error) {
      this.#error = failureOf(error);
      return {};
    }
  }

  #variables({ scope, fanIn }: Pick<Token, "scope" | "fanIn">, items: JsonObject = {}): Record<string, Json> {
    const outputs = [...scopesAround(scope)].map(({ output }) => output).reverse();
    const output = outputs.reduce(overlaid);
    return { input: this.input, state: this.#state, output, fanIn, ...items };
  }

  #mapped(
    at: string,
    mapping: Readonly<Record<string, string>>,
    variables: Record<string, Json>,
  ): JsonObject {
    const members = Object.entries(mapping).flatMap(([name, source]) => {
      const value = this.#evaluated(jsonPointer([name], at), source, variables);
      return value === undefined ? [] : [[name, value] as const];
    });
    return Object.fromEntries(members);
  }

  #baseOf(transition: WorkflowTransition): string {
    return `/transitions/${this.definition.transitions.indexOf(transition)}`;
  }

  /** Evaluates an expression, and notes which of the paths that it reads were there. */
  #evaluated(at: string, source: string, variables: Record<string, Json>): Json | undefined {
    const reads = pathsOf(source);
    for (const names of reads) {
      const value = names.reduce<Json | undefined>(
        (inner, name) => (isJsonObject(inner) && Object.hasOwn(inner, name) ? inner[name] : undefined),
        variables,
      );
      this.#trace.push({ type: "read", at, path: names.join("."), isFound: value !== undefined });
    }
    // Names of items that this token does not have are null.
    const missing = reads.flatMap(([name = ""]) => (Object.hasOwn(variables, name) ? [] : [[name, null]]));
    return evaluate(source, { ...variables, ...Object.fromEntries(missing) });
  }
}

const knownMeetings = new WeakMap<WorkflowDefinition, Meetings>();

function meetingsOf(definition: WorkflowDefinition): Meetings {
  const known = knownMeetings.get(definition) ?? findMeetings(definition);
  knownMeetings.set(definition, known);
  return known;
}

function meetingAt(transition: WorkflowTransition | undefined): FanOutInstance["meeting"] {
  const { to, synchronization } = transition ?? {};
  return to === undefined || synchronization === undefined ? null : { target: to, synchronization };
}

const knownPaths = new Map<string, readonly (readonly string[])[]>();

function pathsOf(source: string): readonly (readonly string[])[] {
  const known = knownPaths.get(source) ?? readsOf(source).paths;
  knownPaths.set(source, known);
  return known;
}

function scopeOf(fanOut: FanOutInstance | null, index: number, path: string): Scope {
  return { fanOut, index, output: {}, path, active: 0, arrivals: [], failure: null };
}

/** Returns a scope and its outer scopes. */
function* scopesAround(scope: Scope): Generator<Scope> {
  for (let one: Scope | undefined = scope; one !== undefined; one = one.fanOut?.outer) yield one;
}

function counted(counts: Counts, transitions: readonly WorkflowTransition[]): Counts {
  return { ...counts, ...Object.fromEntries(transitions.map(({ ref }) => [ref, (counts[ref] ?? 0) + 1])) };
}

function failureOf(error: unknown): RunError {
  if (error instanceof Stop) throw error;
  if (error instanceof Failure) return error.error;
  return { code: "INVALID_INPUT", message: error instanceof Error ? error.message : String(error) };
}

function remove<Item>(list: Item[], item: Item): void {
  const index = list.indexOf(item);
  if (index >= 0) list.splice(index, 1);
}

function defaulted(name: string, value: Json | undefined): JsonObject {
  return value === undefined ? {} : { [name]: value };
}

/**
 * A run with the runs of its parts and its sub-workflows. A test plays their cores in a random order: it ends the work of nodes, delivers
 * envelopes, and lets the actors of runs die. A new actor loads the stored state. An agent waits for a person at most once.
 */

import { childRunOf, partResultOf } from "../../../src/agents/coordinator/core/child-run.ts";
import { Draft } from "../../../src/agents/coordinator/core/draft.ts";
import { tokenOf } from "../../../src/agents/coordinator/core/operations.ts";
import { newRun, plan } from "../../../src/agents/coordinator/core/plan.ts";
import type { RunRecord } from "../../../src/agents/coordinator/core/record.ts";
import { type RunEnvelope, runEnvelopes } from "../../../src/agents/coordinator/core/run-envelopes.ts";
import type { RunSignal } from "../../../src/agents/coordinator/core/signals.ts";
import { isOver, type RunState, type Token } from "../../../src/agents/coordinator/core/state.ts";
import { pendingIn } from "../../../src/agents/coordinator/core/tree-share.ts";
import { workOf } from "../../../src/agents/coordinator/core/work.ts";
import { RunDatabase } from "../../../src/agents/coordinator/store/run-database.ts";
import { NodeKeyValue } from "../../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../../src/ports/node/node-sql-database.ts";
import { AGENT_CALL, AGENT_CANCEL } from "../../../src/protocol/agent-call.ts";
import {
  PART_CLOSE,
  PART_ENDED,
  PART_PROGRESS,
  type PartStart,
  partProgressSchema,
  RUN_CANCEL,
  RUN_ENDED,
  RUN_START,
  RUN_WAITS,
  type RunPart,
  runEndedSchema,
  runStartSchema,
  runWaitsSchema,
} from "../../../src/protocol/run-call.ts";
import { asResult } from "../../../src/shared/errors.ts";
import type { Random } from "../../../src/testing/random.ts";
import type { TaskOutcome } from "./run.ts";

export interface TreeOptions {
  readonly record: Omit<RunRecord, "createdAt">;
  /** Returns the outcome of the `attempt`th run of a node on a path, counted from 0. */
  outcome(node: string, path: string, attempt: number): TaskOutcome;
  readonly random: Random;
  /** The chance that an actor dies before a step. */
  readonly deaths?: number;
}

interface Member {
  state: RunState;
  store: RunDatabase;
}

type Move = () => void | Promise<void>;

export class PlayedTree {
  readonly runs = new Map<string, Member>();
  now = 1_000;
  /** The most parts that a run has waited for at once. */
  openParts = 0;
  /** The types of the envelopes that were sent. */
  readonly sent: string[] = [];
  readonly #post: { from: string; envelope: RunEnvelope }[] = [];
  readonly #unwanted = new Set<string>();
  readonly #attempts = new Map<string, number>();

  constructor(private readonly options: TreeOptions) {
    this.#begin({ ...options.record, createdAt: this.now });
  }

  get root(): RunState {
    return this.#member(this.options.record.id).state;
  }

  /** Plays until the first run has ended, and then until all work has ended. */
  async finish(): Promise<void> {
    for (let step = 0; await this.step(); step++) if (step > 50_000) throw new Error("The runs are stuck.");
    if (!isOver(this.root)) throw new Error("The run is stuck.");
  }

  /** Takes one step. Returns whether there was any. */
  async step(): Promise<boolean> {
    const { random, deaths = 0 } = this.options;
    const moves = this.#moves();
    if (moves.length === 0) return false;
    if (random.chance(deaths)) this.die(random.pick([...this.runs.keys()]));
    await random.pick(moves)();
    return true;
  }

  /** Reports whether an envelope of a type that a run has sent has not arrived. */
  isUnderWay(type: string, from: string): boolean {
    return this.#post.some((one) => one.from === from && one.envelope.type === type);
  }

  /** Ends the life of a run's actor, and loads its stored state. */
  die(id: string): void {
    const member = this.#member(id);
    const loaded = member.store.load();
    if (loaded === null) throw new Error("The run is not stored.");
    member.state = loaded;
    this.take(id, { type: "run.recover" });
  }

  /** Commits signals of a run. */
  take(id: string, ...signals: RunSignal[]): void {
    const member = this.#member(id);
    const before = member.state;
    const change = plan(before, signals, this.now);
    if (change === null) return;
    member.store.commit(before, change, this.now);
    member.state = change.state;
    const parts = [...change.state.tokens.values()].filter(({ part }) => part === true);
    this.openParts = Math.max(this.openParts, parts.length);
    for (const envelope of runEnvelopes(before, change)) {
      this.sent.push(envelope.type);
      this.#post.push({ from: id, envelope });
    }
  }

  #begin(record: RunRecord, part?: PartStart): void {
    const database = new NodeSqlDatabase();
    const store = new RunDatabase(database, new NodeKeyValue(database));
    this.runs.set(record.id, { state: store.create(newRun(record, part)), store });
    this.take(record.id, { type: "run.begin", ...(part && { part }) });
  }

  #member(id: string): Member {
    const member = this.runs.get(id);
    if (member === undefined) throw new Error(`There is no run "${id}".`);
    return member;
  }

  #moves(): Move[] {
    const moves: Move[] = [...this.runs].flatMap(([id, { state }]) => {
      if (isOver(state)) return [];
      const tokens = [...state.tokens.values()];
      const works = tokens.flatMap((token) => this.#worksOf(id, state, token));
      // The end of another run resumes a token that waits for room.
      const isBehind = tokens.some(pendingIn(state));
      return isBehind ? [...works, () => this.take(id, { type: "run.advance" })] : works;
    });
    // The envelopes of one sender to one receiver arrive in order.
    const firsts = new Map(
      this.#post.toReversed().map((one) => [`${one.from} ${one.envelope.to.id}`, one] as const),
    );
    for (const one of firsts.values())
      moves.push(() => {
        this.#post.splice(this.#post.indexOf(one), 1);
        return this.#deliver(one.from, one.envelope);
      });
    return moves;
  }

  /** Returns the moves of the work of a token, which others do. */
  #worksOf(id: string, { record }: RunState, token: Token): Move[] {
    const { id: number, phase } = token;
    if (phase.kind !== "working") return [];
    const end = () => this.#end(id, token);
    switch (workOf(record, token)?.kind) {
      case "task":
        return [end];
      case "gate":
        return [() => this.take(id, { type: "gate.answered", token: number, answer: {}, by: "ada" })];
      case "agent": {
        const { attempt, wait: known } = phase;
        if (known?.isHeld === false) return [end];
        const wait = known === undefined ? { isHeld: true, seq: 1 } : { isHeld: false, seq: 2 };
        return [end, () => this.take(id, { type: "run.waits", token: number, attempt, wait })];
      }
      default:
        return [];
    }
  }

  #end(id: string, { id: token, node, phase, scope }: Token): void {
    const { state } = this.#member(id);
    const { path } = new Draft(state, 0).placeOf(scope);
    const key = `${node} ${path}`;
    const attempt = this.#attempts.get(key) ?? 0;
    this.#attempts.set(key, attempt + 1);
    const outcome = this.options.outcome(node, path, attempt);
    if (phase.kind !== "working") return;
    this.take(id, {
      ...{ type: "node.ended", token, attempt: phase.attempt },
      outcome: "failure" in outcome ? { error: outcome.failure } : outcome,
    });
  }

  async #deliver(from: string, { to, type, body }: RunEnvelope): Promise<void> {
    const address = runStartSchema.parse(body);
    const token = () => tokenOf(this.#member(to.id).state.record, address.operationId) ?? -1;
    const { attempt } = address;
    switch (type) {
      case RUN_START:
        return this.#start(from, to.id, address);
      case RUN_ENDED:
        return this.take(to.id, {
          ...{ type: "node.ended", token: token(), attempt },
          outcome: runEndedSchema.parse(body).outcome,
        });
      case PART_ENDED:
        return this.take(to.id, {
          ...{ type: "part.ended", token: token(), attempt },
          result: structuredClone(partResultOf(this.#member(from).state, address)),
        });
      case PART_PROGRESS:
        return this.take(to.id, {
          ...{ type: "part.progress", token: token() },
          ...partProgressSchema.parse(body),
        });
      case PART_CLOSE:
        if (this.runs.has(to.id)) return this.take(to.id, { type: "part.close" });
        this.#unwanted.add(to.id);
        return this.take(from, {
          ...{
            type: "part.ended",
            token: tokenOf(this.#member(from).state.record, address.operationId) ?? -1,
          },
          ...{ attempt, result: { completed: [], outputs: [], failed: [] } },
        });
      case RUN_WAITS: {
        const { operationId: _, attempt: _attempt, ...wait } = runWaitsSchema.parse(body);
        return this.take(to.id, { type: "run.waits", token: token(), attempt, wait });
      }
      case RUN_CANCEL:
        if (this.runs.has(to.id)) return this.take(to.id, { type: "run.cancel", by: from });
        this.#unwanted.add(to.id);
        return;
      case AGENT_CALL:
      case AGENT_CANCEL:
        // The moves of the token play the agent.
        return;
      default:
        throw new Error(`Nothing takes "${type}".`);
    }
  }

  async #start(
    from: string,
    id: string,
    { operationId, attempt }: { operationId: string; attempt: number },
  ): Promise<void> {
    const above = this.#member(from).state;
    const found = await asResult(() =>
      structuredClone(childRunOf(above, tokenOf(above.record, operationId) ?? -1, attempt)),
    );
    if (this.runs.has(id) || this.#unwanted.has(id)) return;
    if (!found.ok) {
      if (found.error.code !== "NOT_FOUND") throw new Error(found.error.message);
      return;
    }
    const { part, ...child } = found.value;
    const { branches: _branches, state: _state, output: _output, ...place } = part ?? {};
    const stem = `01ARZ3NDEKTSV4R${String(this.runs.size).padStart(4, "0")}`;
    this.#begin(
      {
        ...{ id, tenant: above.record.tenant, stem, request: "", createdAt: this.now },
        ...{ ...child, ...(part && { part: place as RunPart }) },
        parent: { runId: from, rootRunId: child.rootRunId, operationId, attempt },
      },
      part,
    );
  }
}

/** Runs turns that call workflows: conversations and runs on the Node adapters, their real mailboxes on a failing network, one virtual clock. */

import { z } from "zod";
import { graphOf } from "../../../src/agents/coordinator/core/graph.ts";
import { operationOf } from "../../../src/agents/coordinator/core/operations.ts";
import { definitionOf, isOver, type RunState } from "../../../src/agents/coordinator/core/state.ts";
import { startsRun } from "../../../src/agents/coordinator/core/tree-share.ts";
import { workOf } from "../../../src/agents/coordinator/core/work.ts";
import { defineTool } from "../../../src/library/define/define.ts";
import type { ModelGateway } from "../../../src/model/gateway.ts";
import type { ModelDelta } from "../../../src/model/reply.ts";
import { seededIds } from "../../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../../src/ports/node/virtual-clock.ts";
import type { AgentApi } from "../../../src/protocol/agent-api.ts";
import type { VersionChain } from "../../../src/protocol/definitions.ts";
import type { ActorAddress, Envelope } from "../../../src/protocol/envelope.ts";
import type { TaskExecutor } from "../../../src/protocol/executor-api.ts";
import type { Frame } from "../../../src/protocol/frames.ts";
import type { Answer, Attempt } from "../../../src/protocol/mailbox-api.ts";
import type { PinnedNodeTask, PinnedWorkflow } from "../../../src/protocol/pinned-workflow.ts";
import type { ChildRun } from "../../../src/protocol/run-call.ts";
import type { WorkflowNode, WorkflowTransition } from "../../../src/protocol/workflow-definition.ts";
import { defined } from "../../../src/shared/defined.ts";
import { DramatisError, type ErrorCode } from "../../../src/shared/errors.ts";
import type { JsonObject } from "../../../src/shared/json.ts";
import { Random } from "../../../src/testing/random.ts";
import {
  ConversationActor,
  type ConversationLife,
  RunActor,
  type RunWorld,
} from "../../../src/testing/world/actors.ts";
import { isDeath, type MortalLife } from "../../../src/testing/world/mortal-actor.ts";
import { PIN } from "../../support/records.ts";
import {
  type FlowCall,
  type FlowPlan,
  type FlowStep,
  type FlowsPlan,
  flowsOf,
  HOUR,
  MINUTE,
} from "./plan.ts";

export const TENANT = "sim";
const ROOT = "conv_00000000000000000000000000";
const ADA = { type: "user", userId: "ada" } as const;
/** A simulation that needs more steps is stuck. */
const MAX_STEPS = 60_000;
const USAGE: ModelDelta = { type: "usage", usage: { inputTokens: 10, outputTokens: 10 } };
/** Tokens of each answered request. */
export const TOKENS = 20;

type AgentStep = Extract<FlowStep, { kind: "agent" }>;

/** Defects that are planted, to see that the properties find them. */
export type Defect =
  | "cancellations lost"
  | "ends counted twice"
  | "waits not reported"
  | "starts decided early";

export class FlowWorld implements RunWorld {
  readonly clock = new VirtualClock();
  readonly ids;
  readonly conversations = new Map<string, ConversationActor>();
  readonly runs = new Map<string, RunActor>();
  readonly log: string[] = [];
  /** Counts of the answered and the lost requests to models. */
  readonly requests = { answered: 0, lost: 0 };
  crashed = 0;
  /** Runs that ended while starts below them waited for room. */
  overtaken = 0;
  readonly #draws: Random;
  readonly #network: Random;
  readonly #flows: Map<number, FlowPlan>;
  readonly #agents: Map<string, AgentStep>;
  readonly #opened = new Set<string>();
  /** The runs with a start that waits for room. */
  readonly #queued = new Set<RunActor>();
  readonly #signing = new Set<Promise<unknown>>();
  #crashes = 0;
  #bad = 0;

  constructor(
    readonly plan: FlowsPlan,
    private readonly defect?: Defect,
  ) {
    this.ids = seededIds(plan.seed, this.clock);
    this.#draws = new Random(plan.seed).fork("crashes");
    this.#network = new Random(plan.seed).fork("network");
    const all = this.calls.flatMap(({ flow }) => flowsOf(flow));
    this.#flows = new Map(all.map((flow) => [flow.id, flow]));
    this.#agents = new Map(
      all.flatMap(({ id, steps }) =>
        steps.flatMap((step, at): [string, AgentStep][] =>
          step.kind === "agent" ? [[agentOf(id, at), step]] : [],
        ),
      ),
    );
  }

  get calls(): FlowCall[] {
    return this.plan.turns.flatMap(({ calls }) => calls);
  }

  get bounds(): Pick<ChildRun, "width" | "share"> {
    const { room, spread } = this.plan;
    return defined({ width: spread, share: room === undefined ? undefined : { runs: room, tokens: 1_000 } });
  }

  get root(): ConversationActor {
    return this.conversation(ROOT);
  }

  conversation(id: string): ConversationActor {
    const actor = this.conversations.get(id) ?? new ConversationActor(this, TENANT, id);
    this.conversations.set(id, actor);
    return actor;
  }

  run(id: string): RunActor {
    const actor = this.runs.get(id) ?? new RunActor(this, TENANT, id);
    this.runs.set(id, actor);
    return actor;
  }

  /** Runs the plan to its end. */
  async play(): Promise<void> {
    const { turns, stops, resets, crashes, badDeliveries } = this.plan;
    const { runtime } = this.root.awake();
    await runtime.create({
      ...{ id: ROOT, tenant: TENANT, title: null, projectId: "default", listed: false },
      participants: [{ type: "user", id: "ada" }],
      agents: [{ id: "lead", chain: this.#lead() }],
      createdAt: this.clock.now(),
    });
    [this.#crashes, this.#bad] = [crashes, badDeliveries];
    for (const [index, { at }] of turns.entries())
      this.clock.timer(at, () =>
        this.#act((own) =>
          own.accept({
            type: "conversation.user.message",
            ...{ caller: ADA, id: `message-${index}`, data: { content: `turn ${index}` } },
          }),
        ),
      );
    for (const { at, turn: n } of stops)
      this.clock.timer(at, () =>
        this.#act(async (own) => {
          const turn = n === undefined ? undefined : own.turn(n);
          if (n === undefined) await own.changes.cancel({ caller: ADA });
          else if (turn) await own.changes.cancelTurn(turn, { caller: ADA });
        }),
      );
    for (const at of resets) this.clock.timer(at, () => this.#reset());
    await this.#untilQuiet();
    [this.#crashes, this.#bad] = [0, 0];
    for (const actor of this.#actors()) actor.awake();
    // A crash may lose the report of a gate. Then people find the gate in a list.
    for (const actor of this.runs.values()) {
      const { runtime } = actor.awake();
      if (runtime.exists) this.openGates(actor, runtime.state);
    }
    await this.#untilQuiet();
  }

  /** Reports whether an actor dies at this crossing. */
  strikes(): boolean {
    if (this.#crashes === 0 || !this.#draws.chance(this.plan.crashChance)) return false;
    this.#crashes -= 1;
    this.crashed += 1;
    return true;
  }

  /** Takes the time between the look of a start at the run above and its commit. */
  readonly afterLook = async (): Promise<void> => {
    if (this.defect === "starts decided early") await this.clock.sleep(5_000);
  };

  /** Takes the time of a request from actor to actor. Throws if the network fails. */
  async travel(): Promise<void> {
    await this.clock.sleep(1);
    if (this.#isBad()) throw new DramatisError("UNAVAILABLE", "The actor is away.", { retriable: true });
  }

  readonly agent = async (_tenant: string, id: string): Promise<Pick<AgentApi, "persona">> => {
    const chain = this.#helper(id);
    return { persona: async () => ({ ok: true, value: { chain, projectIds: ["default"] } }) };
  };

  /** Returns a workflow as it is pinned. */
  workflow(reference: string): PinnedWorkflow {
    const flow = this.#flows.get(Number(/\d+/.exec(reference)?.[0]));
    if (flow === undefined) throw new DramatisError("NOT_FOUND", `There is no workflow "${reference}".`);
    return pinnedOf(flow);
  }

  contextOf(actor: ConversationActor, life: ConversationLife) {
    return {
      gateway: this.#gatewayFor(life, actor.id),
      executor: this.#executorFor(life),
      publish: (frames: Frame[]) => this.#ask(actor, frames),
    };
  }

  readonly checkedInput = (_workflow: PinnedWorkflow, input: JsonObject) => input;

  onRun(actor: RunActor, state: RunState): void {
    this.openGates(actor, state);
    if (isOver(state) && this.#queued.delete(actor)) this.overtaken += 1;
    const graph = graphOf(definitionOf(state));
    if ([...state.tokens.values()].some((token) => startsRun(graph, token))) this.#queued.add(actor);
    else this.#queued.delete(actor);
  }

  /** Lets people answer the gates of a run, as planned. */
  openGates(actor: RunActor, { record, tokens }: RunState): void {
    for (const token of tokens.values()) {
      if (token.phase.kind !== "working" || workOf(record, token)?.kind !== "gate") continue;
      const operation = operationOf(record, token.id);
      const step = this.#flows.get(Number(record.workflow.id.slice(1)))?.steps[Number(token.node.slice(1))];
      if (step?.kind !== "gate" || step.ms === undefined || this.#opened.has(operation)) continue;
      this.#opened.add(operation);
      this.#answerAfter(step.ms, () => actor.awake().runtime.answer(operation, {}, "ada"));
    }
  }

  /** Lets a person approve the calls of an agent, as planned. */
  #ask(actor: ConversationActor, frames: readonly Frame[]): void {
    for (const { type, operationId, data } of frames) {
      if (type !== "approval.requested" || operationId === undefined || this.#opened.has(operationId))
        continue;
      const { asks = 1 } = this.#agents.get(String((data as { agentId?: string }).agentId ?? "")) ?? {};
      this.#opened.add(operationId);
      this.#answerAfter(this.#askTime(actor) ?? asks, () =>
        actor.awake().runtime.results.approve(operationId, { approved: true, caller: ADA }),
      );
    }
  }

  #askTime(actor: ConversationActor): number | undefined {
    const { life } = actor;
    const [agent] = life?.runtime.exists ? life.runtime.state.record.agents : [];
    return agent === undefined ? undefined : this.#agents.get(agent.id)?.asks;
  }

  /** A person repeats an answer that the actor has not taken. */
  #answerAfter(milliseconds: number, answer: () => Promise<unknown>): void {
    this.clock.timer(milliseconds, () => {
      const given = (async () => answer())();
      given.catch((error: unknown) => {
        if (isDeath(error)) this.#answerAfter(1_000, answer);
        else this.swallow(error, ["CONFLICT", "NOT_FOUND"]);
      });
    });
  }

  /** Brings an envelope to its receiver, with the faults of the network. */
  carry(sender: MortalLife, envelope: Envelope, attempt: Attempt): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    if (!sender.alive) return promise;
    const { type, to } = envelope;
    const isLost =
      (this.defect === "cancellations lost" && type === "run.cancel") ||
      (this.defect === "waits not reported" && type === "run.waits");
    if (isLost) return Promise.resolve({ type: "done", result: null });
    if (this.defect === "ends counted twice" && type === "run.ended" && attempt.number === 1) {
      const again = { ...envelope, operationId: `op_${this.ids.ulid()}` };
      this.clock.timer(
        50,
        () => void this.#receive(to, again, { number: 1, last: false }).catch(() => undefined),
      );
    }
    const isBad = this.#isBad();
    const draw = this.#network;
    const copies = isBad ? draw.int(0, 2) : 1;
    const answers = !isBad || draw.chance(0.5);
    for (let copy = 0; copy < copies; copy++)
      this.clock.timer(isBad ? draw.small(1, 8_000) : 1, () => {
        this.#receive(to, structuredClone(envelope), { ...attempt }).then(
          (answer) => {
            if (copy === 0 && answers) this.clock.timer(1, () => resolve(answer));
          },
          (error: unknown) => {
            this.swallow(error);
            if (copy === 0) this.clock.timer(1, () => reject(error));
          },
        );
      });
    if (copies === 0 || !answers) this.clock.timer(draw.int(100, 40_000), () => reject(new Error("broken")));
    return promise;
  }

  async #receive({ kind, id }: ActorAddress, envelope: Envelope, attempt: Attempt): Promise<Answer> {
    return (kind === "coordinator" ? this.run(id) : this.conversation(id)).receive(envelope, attempt);
  }

  #gatewayFor(life: MortalLife, conversation: string): ModelGateway {
    const world = this;
    return {
      async *stream({ body }, signal): AsyncGenerator<ModelDelta> {
        if (!life.alive) throw new Error("dead");
        // SAFETY: the adapter of the format wrote the body.
        const messages = body.messages as unknown as { role: string; content: string | null }[];
        // A stopped request rejects.
        await world.clock.sleep(5, signal).catch(() => undefined);
        if (!life.alive || signal.aborted) {
          world.requests.lost += 1;
          return;
        }
        for (const delta of world.#replyTo(conversation, messages)) yield delta;
        world.requests.answered += 1;
      },
    };
  }

  #replyTo(conversation: string, messages: { role: string; content: string | null }[]): ModelDelta[] {
    const last = messages.findLastIndex(
      ({ role, content }) => role === "user" && /turn \d|W\d/.test(content ?? ""),
    );
    const content = messages[last]?.content ?? "";
    const results = messages.slice(last).filter(({ role }) => role === "tool").length;
    const call = (index: number, name: string): ModelDelta => ({
      ...{ type: "tool-call", index, id: `c${results}_${index}`, name, arguments: `{"n": ${results}}` },
    });
    const answer: ModelDelta[] = [{ type: "text", text: "Done." }, USAGE, { type: "finish", reason: "stop" }];
    const finish: ModelDelta = { type: "finish", reason: "tool_calls" };
    if (conversation !== ROOT) {
      const agent = /W(\d+)x(\d+)/.exec(content);
      const step = this.#agents.get(agentOf(Number(agent?.[1]), Number(agent?.[2])));
      return step === undefined || results >= step.calls
        ? answer
        : [call(0, step.asks !== undefined && results === 0 ? "careful" : "work"), USAGE, finish];
    }
    const { calls = [] } = this.plan.turns[Number(/turn (\d+)/.exec(content)?.[1])] ?? {};
    return results > 0
      ? answer
      : [...calls.map(({ flow }, index) => call(index, `flow_${flow.id}`)), USAGE, finish];
  }

  /** The executor of runs. The id of a task defines its duration. */
  tasksFor(life: MortalLife): TaskExecutor {
    return {
      run: async (calls, caller) => {
        await Promise.all(
          calls.map(async ({ operationId, toolCallId, tool }) => {
            await this.clock.sleep(Number(tool.id.slice("work-".length)));
            if (!life.alive) throw new Error("dead");
            await caller.report([
              { operationId, result: { tool_call_id: toolCallId, success: true, result: null } },
            ]);
          }),
        );
      },
    };
  }

  /** The executor of agents' tools. The agent's plan defines the durations. A long call returns a handle. */
  #executorFor(life: ConversationLife): TaskExecutor {
    return {
      run: async (calls, caller) => {
        await Promise.all(
          calls.map(async ({ operationId, attempt, toolCallId, context }) => {
            const { ms = 1 } = this.#agents.get(context.agentId ?? "") ?? {};
            if (ms >= MINUTE) {
              const { results } = life.runtime;
              const { handle, expiresAt } = await this.#signed(results.defer({ operationId, attempt }));
              const actor = this.conversation(context.conversationId ?? "");
              const complete = () => actor.awake().runtime.results.complete(handle, { result: null });
              this.#answerAfter(ms, () => this.#signed(complete()));
              await caller.report([{ operationId, deferred: { expiresAt } }]);
              return;
            }
            await this.clock.sleep(ms);
            if (!life.alive) throw new Error("dead");
            await caller.report([
              { operationId, result: { tool_call_id: toolCallId, success: true, result: null } },
            ]);
          }),
        );
      },
    };
  }

  /** The virtual clock stops while a signature is made. */
  async #signed<Value>(work: Promise<Value>): Promise<Value> {
    this.#signing.add(work);
    return work.finally(() => this.#signing.delete(work));
  }

  /** Ignores planned crashes and refusals of an act. Logs other errors as violations. */
  swallow(error: unknown, refusals: readonly ErrorCode[] = []): void {
    const isRefusal = error instanceof DramatisError && refusals.includes(error.code);
    if (!isRefusal && !isDeath(error))
      this.log.push(`${this.clock.now()} ${error instanceof Error ? error.stack : error}`);
  }

  /** A user repeats an act that the actor has not taken. */
  #act(act: (runtime: ReturnType<ConversationActor["awake"]>["runtime"]) => Promise<unknown>): void {
    const acted = (async () => act(this.root.awake().runtime))();
    acted.catch((error: unknown) => {
      if (isDeath(error)) this.clock.timer(500, () => this.#act(act));
      else this.swallow(error, ["CONFLICT", "CONVERSATION_CLOSED"]);
    });
  }

  #reset(): void {
    for (const actor of this.#actors()) actor.kill();
  }

  #isBad(): boolean {
    if (this.#bad === 0 || !this.#network.chance(this.plan.badChance)) return false;
    this.#bad -= 1;
    return true;
  }

  #actors(): (ConversationActor | RunActor)[] {
    return [...this.conversations.values(), ...this.runs.values()];
  }

  #lead(): VersionChain {
    return chainOf(
      this.calls.map(({ flow, background, effect, timeoutMs }) =>
        defineTool({
          ...{ name: `flow_${flow.id}`, description: "Runs.", input: z.object({ n: z.number() }) },
          ...{
            target: { workflow: `sim/f${flow.id}` },
            async: background,
            effect,
            ...defined({ timeoutMs }),
          },
        }),
      ),
    );
  }

  #helper(_id: string): VersionChain {
    const tool = (name: string, more: object) =>
      defineTool({
        ...{ name, description: "Works.", input: z.object({ n: z.number() }), effect: "idempotent" },
        ...{ timeoutMs: 900_000, execute: () => null, ...more },
      });
    return chainOf([tool("work", {}), tool("careful", { approval: "always" })]);
  }

  async #untilQuiet(): Promise<void> {
    for (let step = 0; step < MAX_STEPS; step++) {
      await this.clock.advance(0);
      while (this.#signing.size > 0) {
        await Promise.allSettled([...this.#signing]);
        await this.clock.advance(0);
      }
      const jobs = this.#actors().flatMap(({ due }) => due ?? []);
      const next = Math.min(...jobs, this.clock.nextDue ?? Number.POSITIVE_INFINITY);
      if (next === Number.POSITIVE_INFINITY) return;
      await this.clock.advance(Math.max(0, next - this.clock.now()));
      for (const actor of this.#actors()) actor.fire();
    }
    throw new Error("The simulation does not come to rest.");
  }
}

function agentOf(flow: number, step: number): string {
  return `agent-${flow}-${step}`;
}

function chainOf(tools: readonly ReturnType<typeof defineTool>[]): VersionChain {
  return {
    persona: { ...PIN, id: "inline", definition: { identity: { systemPrompt: "You work." } } },
    tools: tools.map(({ id, definition }) => ({ ...PIN, library: "sim", id, definition })),
    modelProfile: {
      ...{ ...PIN, id: "default" },
      definition: {
        provider: "openai",
        modelId: "sim",
        baseUrl: "http://model/v1",
        parameters: { max_tokens: 100 },
      },
    },
    fallbacks: [],
  };
}

/** Returns a workflow as a run keeps it: one node for each step, between two others if it fans out. */
function pinnedOf({ id, steps }: FlowPlan): PinnedWorkflow {
  const tasks: Record<string, PinnedNodeTask> = {};
  const workflows: Record<string, PinnedWorkflow> = {};
  const nodes: WorkflowNode[] = [];
  const transitions: WorkflowTransition[] = [];
  const append = (node: WorkflowNode, more: Partial<WorkflowTransition> = {}) => {
    const from = nodes.at(-1)?.ref;
    nodes.push(node);
    if (from !== undefined)
      transitions.push({ ref: `t${nodes.length}`, from, to: node.ref, priority: 0, ...more });
  };
  for (const [at, step] of steps.entries()) {
    const ref = `s${at}`;
    switch (step.kind) {
      case "gate":
        tasks[ref] = gateOf(step.limit);
        append({ ref, task: "sim/gate" });
        break;
      case "task":
        tasks[ref] = { library: "sim", id: `work-${step.ms}`, effect: "pure", timeoutMs: HOUR };
        append({ ref, task: "sim/work" });
        break;
      case "agent":
        append({
          ...{ ref, agent: agentOf(id, at), mode: "delegate" },
          ...{ inputMapping: { message: `'W${id}x${at}'` }, ...defined({ timeoutMs: step.timeoutMs }) },
        });
        break;
      case "flow": {
        const { flow, width = 1 } = step;
        workflows[ref] = pinnedOf(flow);
        const node = { ref, workflow: `sim/f${flow.id}` };
        const siblingGroup = `g${at}`;
        if (width === 1) append(node);
        else {
          append({ ref: `fan${at}` });
          append(node, { siblingGroup, spawnCount: width });
          append(
            { ref: `join${at}` },
            { synchronization: { siblingGroup, strategy: "all", onTimeout: "fail" } },
          );
        }
        break;
      }
      default:
        step satisfies never;
    }
  }
  if (nodes.length === 0) append({ ref: "s0" });
  return {
    ...{ library: "sim", id: `f${id}`, version: 1, hash: "", tasks, workflows },
    definition: {
      inputSchema: { type: "object" },
      outputMapping: { done: `'F${id}'` },
      initialNode: nodes[0]?.ref ?? "",
      nodes,
      transitions,
    },
  };
}

function gateOf(limit: number | undefined): PinnedNodeTask {
  const action = { kind: "human.input", prompt: "Well?", schema: { type: "object" } } as const;
  const step = { ref: "ask", action: { ...action, ...(limit !== undefined && { timeoutMs: limit }) } };
  const task = { id: "gate", version: 1, hash: "", inputSchema: { type: "object" }, steps: [step] };
  return { library: "sim", id: "gate", effect: "pure", timeoutMs: 1_000, task };
}

/**
 * Runs a tree of calls on one virtual clock: the conversations of all agents on the Node adapters, and models that
 * follow the plan. The real mailboxes use a network that drops, delays, repeats and reorders.
 */

import { reservedByCalls, spentByTurn } from "../../../src/agents/conversation/core/ledger.ts";
import type { Invitation } from "../../../src/agents/conversation/core/signals.ts";
import { chainOf } from "../../../src/agents/conversation/core/state.ts";
import { outgoing } from "../../../src/agents/conversation/mailbox-handlers.ts";
import { defineTool } from "../../../src/library/define/define.ts";
import type { ModelGateway } from "../../../src/model/gateway.ts";
import type { ModelDelta } from "../../../src/model/reply.ts";
import { seededIds } from "../../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../../src/ports/node/virtual-clock.ts";
import type { AgentApi } from "../../../src/protocol/agent-api.ts";
import {
  AGENT_CALL,
  AGENT_CANCEL,
  AGENT_RESULT,
  type AgentCallBody,
} from "../../../src/protocol/agent-call.ts";
import type { VersionChain } from "../../../src/protocol/definitions.ts";
import type { Envelope, NewEnvelope } from "../../../src/protocol/envelope.ts";
import type { Frame } from "../../../src/protocol/frames.ts";
import { turnId } from "../../../src/protocol/ids.ts";
import type { Answer, Attempt } from "../../../src/protocol/mailbox-api.ts";
import { defined } from "../../../src/shared/defined.ts";
import { DramatisError, type ErrorCode } from "../../../src/shared/errors.ts";
import type { JsonObject } from "../../../src/shared/json.ts";
import { Random } from "../../../src/testing/random.ts";
import type { ConversationActor, ConversationWorld } from "../../../src/testing/world/actors.ts";
import { isDeath } from "../../../src/testing/world/mortal-actor.ts";
import { PIN } from "../../support/records.ts";
import { type Life, TreeActor } from "./actor.ts";
import { callsIn, type TreePlan, type WorkPlan, worksIn } from "./plan.ts";
import { hidden, type ModelRequest, replyOf, toolOf, toolOptions, workIn } from "./talk.ts";

export const TENANT = "sim";
const ROOT = "conv_00000000000000000000000000";
const ADA = { type: "user", userId: "ada" } as const;
/** A run that needs more steps is stuck. */
const MAX_STEPS = 60_000;

/** Fewer tokens than any estimate: a reservation exceeds the provider's count. */
const CHARACTERS_OF_TOKEN = 6;
const OUTPUT_TOKENS = 10;

/** Defects that are planted in the network between actors, to see that the properties find them. */
export type Defect =
  | "cancellations lost"
  | "results counted twice"
  | "budgets not inherited"
  | "answers forged";

export class TreeWorld implements ConversationWorld {
  readonly clock = new VirtualClock();
  readonly ids;
  readonly actors = new Map<string, TreeActor>();
  readonly requests: ModelRequest[] = [];
  readonly log: string[] = [];
  readonly #random: Random;
  readonly #network: Random;
  readonly #repeated = new Set<string>();
  /** The conversations that have committed a stop. */
  readonly #stopped = new Set<string>();
  readonly #failed = new Map<number, number>();
  readonly #works: Map<number, WorkPlan>;
  #crashes: number;
  #bad: number;

  constructor(
    readonly plan: TreePlan,
    private readonly defect?: Defect,
  ) {
    this.ids = seededIds(plan.seed, this.clock);
    this.#random = new Random(plan.seed).fork("crashes");
    this.#network = new Random(plan.seed).fork("network");
    this.#crashes = plan.crashes;
    this.#bad = plan.badDeliveries;
    const works = worksIn(plan);
    this.#works = new Map(works.map((work) => [work.id, work]));
  }

  get root(): TreeActor {
    return this.actor(ROOT);
  }

  actor(id: string): TreeActor {
    const known = this.actors.get(id);
    if (known !== undefined) return known;
    const actor = new TreeActor(this, id);
    this.actors.set(id, actor);
    return actor;
  }

  /** Reports whether the actor dies at this crossing. */
  strikes(): boolean {
    if (this.#crashes === 0 || !this.#random.chance(this.plan.crashChance)) return false;
    this.#crashes -= 1;
    this.log.push(`${this.clock.now()} crash`);
    return true;
  }

  readonly agent = async (_tenant: string, id: string): Promise<Pick<AgentApi, "persona">> => {
    await this.clock.sleep(this.#network.small(0, 200));
    if (this.#isBad()) throw new DramatisError("UNAVAILABLE", "The agent is away.", { retriable: true });
    const chain = this.#chainOf(id);
    return { persona: async () => ({ ok: true, value: { chain, projectIds: ["default"] } }) };
  };

  contextOf(given: ConversationActor, life: Life) {
    const actor = this.actor(given.id);
    const mail = outgoing(life.mailbox);
    return {
      gateway: this.#gatewayFor(life, actor.id),
      executor: { run: () => Promise.reject(new Error("No agent has code.")) },
      ...defined({ calls: this.plan.calls }),
      send: (envelope: NewEnvelope) => {
        if (envelope.type === AGENT_CANCEL) actor.hasGivenUp = true;
        return mail.send(envelope);
      },
      invite: (_record: unknown, agent: string) => this.#invite(agent),
      publish: (frames: Frame[]) => this.#ask(actor, frames),
    };
  }

  /** Returns the versions of an agent that is to join. */
  async #invite(id: string): Promise<Invitation> {
    await this.clock.sleep(this.#network.small(0, 200));
    if (this.#isBad()) throw new DramatisError("UNAVAILABLE", "The agent is away.", { retriable: true });
    return { agent: { id, chain: this.#chainOf(id) } };
  }

  /** Runs the plan until all work has ended. */
  async run(): Promise<void> {
    const { budget, order, root, more, stops, members, turnBudget } = this.plan;
    const chain = this.#chainOf(root.agent);
    const [crashes, bad] = [this.#crashes, this.#bad];
    [this.#crashes, this.#bad] = [0, 0];
    const { runtime } = this.root.awake();
    await runtime.create(
      {
        id: ROOT,
        tenant: TENANT,
        title: null,
        projectId: "default",
        participants: [{ type: "user", id: "ada" }],
        agents: [{ id: root.agent, chain }],
        listed: false,
        createdAt: this.clock.now(),
      },
      defined({ budget, order }),
    );
    await runtime.accept({
      type: "conversation.user.message",
      caller: ADA,
      data: { content: JSON.stringify(root), ...defined({ budget: turnBudget }) },
    });
    [this.#crashes, this.#bad] = [crashes, bad];
    for (const { at, work } of more)
      this.clock.timer(at, () => {
        const data = { content: JSON.stringify(hidden(work)), ...defined({ budget: turnBudget }) };
        this.#act(this.root, async (life) => {
          await life.runtime.accept({ type: "conversation.user.message", caller: ADA, data });
        });
      });
    for (const { at, type, id } of members)
      this.clock.timer(at, () => {
        const participant = { type: "user", id } as const;
        const signal = { type: `conversation.participant.${type}`, caller: ADA, participant } as const;
        const change = ({ runtime: { changes } }: Life) => changes.changeParticipants(signal);
        this.#act(this.root, change, ["CONVERSATION_CLOSED"]);
      });
    for (const { at, index, turn } of stops)
      this.clock.timer(at, () => {
        const actor = [...this.actors.values()][index];
        if (actor !== undefined)
          this.#act(actor, (life) => this.#stop(actor, life, turn), ["CONVERSATION_CLOSED", "CONFLICT"]);
      });
    await this.#untilQuiet();
    // Work that lost its caller in a crash continues at the next call.
    [this.#crashes, this.#bad] = [0, 0];
    for (const actor of this.actors.values()) actor.awake();
    await this.#untilQuiet();
  }

  /** `refusals` are the errors that the act may have. */
  #act(actor: TreeActor, act: (life: Life) => Promise<unknown>, refusals: readonly ErrorCode[] = []): void {
    try {
      act(actor.awake()).catch((error: unknown) => this.swallow(error, refusals));
    } catch (error) {
      this.swallow(error, refusals);
    }
  }

  /** Stops a conversation for good, or one of its turns. */
  async #stop({ id }: TreeActor, { runtime }: Life, n: number | undefined): Promise<void> {
    if (!runtime.exists) return;
    const turn = n === undefined ? undefined : runtime.turn(n);
    if (turn) await runtime.changes.cancelTurn(turn, { caller: ADA });
    if (n !== undefined) return;
    await runtime.changes.cancel({ caller: ADA });
    this.#stopped.add(id);
  }

  /** A person answers a request for approval that the conversation shows, as planned. */
  #ask(actor: TreeActor, frames: readonly Frame[]): void {
    for (const { type, operationId, data } of frames) {
      if (type !== "approval.requested" || operationId === undefined) continue;
      const { of, input } = data as { of?: object; input?: { message: string } };
      if (of !== undefined || input === undefined) continue;
      const { id } = JSON.parse(input.message) as WorkPlan;
      const planned = callsIn(this.plan).find(({ work }) => work.id === id)?.approval;
      if (planned === undefined || planned.answer === "none") continue;
      const answer = { approved: planned.answer === "approve", caller: ADA };
      this.clock.timer(planned.ms, () =>
        this.#act(actor, ({ runtime }) => runtime.results.approve(operationId, answer), ["CONFLICT"]),
      );
    }
  }

  /** Brings an envelope to its receiver, with the faults of the network. */
  carry(sender: Life, envelope: Envelope, attempt: Attempt): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    if (!sender.alive) return promise;
    const changed = this.#planted(envelope);
    if (changed === null) return Promise.resolve({ type: "done", result: null });
    if (envelope.type === AGENT_CALL && attempt.number === 1) this.#checkTurn(sender, envelope);
    const isBad = this.#isBad();
    const draw = this.#network;
    const copies = isBad ? draw.int(0, 2) : 1;
    const answers = !isBad || draw.chance(0.5);
    for (let copy = 0; copy < copies; copy++) {
      this.clock.timer(isBad ? draw.small(1, 8_000) : 1, () => {
        const receive = async () =>
          this.actor(envelope.to.id).receive(structuredClone(changed), { ...attempt });
        receive().then(
          (answer) => {
            if (envelope.type === AGENT_CANCEL && answer.type === "done") this.#stopped.add(envelope.to.id);
            if (copy === 0 && answers) this.clock.timer(1, () => resolve(answer));
          },
          (error: unknown) => {
            this.swallow(error);
            if (copy === 0) this.clock.timer(1, () => reject(error));
          },
        );
      });
    }
    if (copies === 0 || !answers) this.clock.timer(draw.int(100, 40_000), () => reject(new Error("broken")));
    return promise;
  }

  /** Returns an envelope with the defect applied; `null` if it is lost. */
  #planted(envelope: Envelope): Envelope | null {
    const { type, body } = envelope;
    switch (this.defect) {
      case "cancellations lost":
        return type === AGENT_CANCEL ? null : envelope;
      case "budgets not inherited": {
        if (type !== AGENT_CALL) return envelope;
        const { budget: _, ...rest } = body as JsonObject;
        return { ...envelope, body: rest };
      }
      case "results counted twice":
        if (type === AGENT_RESULT && !this.#repeated.has(envelope.operationId)) {
          const again = { ...envelope, operationId: `op_${this.ids.ulid()}` };
          this.#repeated.add(envelope.operationId).add(again.operationId);
          const repeat = () => this.actor(envelope.to.id).receive(again, { number: 1, last: false });
          this.clock.timer(50, () => void repeat().catch((error: unknown) => this.swallow(error)));
        }
        return envelope;
      case "answers forged":
        return type === AGENT_RESULT && "outcome" in (body as JsonObject) && this.plan.seed % 2 === 0
          ? {
              ...envelope,
              body: {
                ...(body as JsonObject),
                outcome: { text: `: ${this.plan.root.calls[0]?.work.secret}` },
              },
            }
          : envelope;
      default:
        return envelope;
    }
  }

  #gatewayFor(life: Life, conversation: string): ModelGateway {
    const world = this;
    return {
      async *stream({ body }, signal): AsyncGenerator<ModelDelta> {
        if (!life.alive) throw new Error("dead");
        // SAFETY: the adapter of the format wrote the body.
        const messages = body.messages as unknown as ModelRequest["messages"];
        const inputTokens = Math.floor(JSON.stringify(body).length / CHARACTERS_OF_TOKEN);
        const request: ModelRequest = {
          conversation,
          messages: structuredClone(messages),
          tokens: inputTokens + OUTPUT_TOKENS,
          answered: false,
        };
        world.requests.push(request);
        if (world.#stopped.has(conversation))
          world.log.push(`${conversation} asked its model after it was stopped`);
        world.#checkRoom(life, conversation);
        world.#checkCalls();
        const work = world.#workIn(messages);
        const failed = world.#failed.get(work.id) ?? 0;
        await world.clock.sleep(work.ms, signal);
        if (!life.alive || signal.aborted) return;
        if (work.end === "broken" || failed < work.failures) {
          world.#failed.set(work.id, failed + 1);
          const retriable = work.end !== "broken";
          const category = retriable ? ("transient" as const) : ("validation" as const);
          yield { type: "error", error: { category, message: "Failed.", retriable, provider: "openai" } };
          return;
        }
        const deltas = replyOf(work, messages, { inputTokens, outputTokens: OUTPUT_TOKENS });
        for (const delta of deltas) yield delta;
        request.answered = true;
      },
    };
  }

  /** A request begins only if the budget has room. Usage, reservations and shares of calls count. */
  #checkRoom({ runtime }: Life, conversation: string): void {
    const { budget, spent, active } = runtime.state;
    const limit = budget?.tokens;
    if (limit === undefined) return;
    const claimed = [...active.values()].reduce((sum, { call, operations }) => {
      const given = operations.map(({ status, agent }) =>
        status === "dispatched" ? (agent?.budget?.tokens ?? 0) : 0,
      );
      const { inputTokens = 0, outputTokens = 0 } = call?.reserved ?? {};
      return given.reduce((total, part) => total + part, sum + inputTokens + outputTokens);
    }, 0);
    if (spent.tokens + claimed > limit)
      this.log.push(
        `${conversation} may use ${limit} tokens: ${spent.tokens} are spent and ${claimed} claimed`,
      );
  }

  /** A call begins only if the budget of its turn has room. Usage, reservations and shares of calls count. */
  #checkTurn({ runtime }: Life, { body, from }: Envelope): void {
    // SAFETY: a conversation wrote the body.
    const { caller, budget } = body as unknown as AgentCallBody;
    const { active, record } = runtime.state;
    const turn = [...active.values()].find((one) => "turnId" in caller && turnId(one) === caller.turnId);
    const limit = turn?.budget?.tokens;
    if (turn === undefined || limit === undefined || !budget?.tokens) return;
    const spent = spentByTurn(turn, chainOf(record, turn.agentId)).tokens;
    const { inputTokens = 0, outputTokens = 0 } = turn.call?.reserved ?? {};
    const claimed = inputTokens + outputTokens + reservedByCalls(turn).tokens;
    if (spent + claimed > limit)
      this.log.push(
        `a turn of ${from.id} may use ${limit} tokens: ${spent} are spent and ${claimed} claimed`,
      );
  }

  /** A tree keeps its limit of open calls until a call is given up, because its stop takes time. */
  #checkCalls(): void {
    const { tree } = this.plan.calls ?? {};
    if (tree === undefined) return;
    const states = [...this.actors.values()].flatMap(({ state }) => state ?? []);
    const open = states.filter(({ record, status }) => record.call !== undefined && status === "active");
    const isGivenUp = [...this.actors.values()].some(({ hasGivenUp }) => hasGivenUp);
    if (open.length > tree && !isGivenUp)
      this.log.push(`${open.length} calls are open, and the tree may have ${tree}`);
  }

  /** Crashes are planned, and so are the refusals of an act. Anything else is a violation. */
  swallow(error: unknown, refusals: readonly ErrorCode[] = []): void {
    if (!(error instanceof Error)) throw error;
    const isRefusal = error instanceof DramatisError && refusals.includes(error.code);
    if (!isRefusal && !isDeath(error)) this.log.push(`${this.clock.now()} ${error.stack}`);
  }

  #isBad(): boolean {
    if (this.#bad === 0 || !this.#network.chance(this.plan.badChance)) return false;
    this.#bad -= 1;
    return true;
  }

  #workIn(messages: ModelRequest["messages"]): WorkPlan {
    const id = workIn(messages);
    const work = this.#works.get(id);
    if (work === undefined) throw new Error(`There is no work ${id}.`);
    return work;
  }

  #chainOf(agent: string): VersionChain {
    const tools = new Map(callsIn(this.plan).map((call) => [toolOf(call), call]));
    return {
      persona: { ...PIN, id: "inline", definition: { identity: { systemPrompt: `You are ${agent}.` } } },
      tools: [...tools].map(([name, call]) => ({
        ...PIN,
        library: "sim",
        id: name,
        definition: defineTool(toolOptions(name, call, this.plan.timeoutMs)).definition,
      })),
      modelProfile: {
        ...PIN,
        id: "default",
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

  async #untilQuiet(): Promise<void> {
    for (let step = 0; step < MAX_STEPS; step++) {
      await this.clock.advance(0);
      const jobs = [...this.actors.values()].flatMap(({ due }) => due ?? []);
      const next = Math.min(...jobs, this.clock.nextDue ?? Number.POSITIVE_INFINITY);
      if (next === Number.POSITIVE_INFINITY) return;
      await this.clock.advance(Math.max(0, next - this.clock.now()));
      for (const actor of [...this.actors.values()]) actor.fire();
    }
    throw new Error("The tree does not come to rest.");
  }
}

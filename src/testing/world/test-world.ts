/**
 * The world of a test app: its conversations, runs and tools on one virtual clock, and a network that a plan may break.
 *
 * TESTWORLD-1  The code of actors, mailboxes and the executor is real. Only models, the network between actors, the requests of actions and
 *              the clock are simulated.
 * TESTWORLD-3  An error that the runtime logs, and that no fault explains, is an incident. A tool may throw and log.
 */
import { waitingCalls } from "../../agents/conversation/core/waiting-calls.ts";
import type { OperationResults } from "../../agents/conversation/results/operation-results.ts";
import { isOver, type RunState } from "../../agents/coordinator/core/state.ts";
import { waitingGates } from "../../agents/coordinator/reads/run-views.ts";
import type { Artifacts } from "../../artifacts/artifacts.ts";
import type { DeployedCode } from "../../library/registry/deployed-code.ts";
import { pinWorkflow } from "../../library/registry/pin.ts";
import { Registry } from "../../library/registry/registry.ts";
import { resolveChain } from "../../library/registry/resolve.ts";
import { checkedRunInput } from "../../library/workflows/run-input.ts";
import type { ModelGateway } from "../../model/gateway.ts";
import type { ModelProfile } from "../../model/profile.ts";
import { allowAll, type Gate } from "../../policy/gate.ts";
import { seededIds } from "../../ports/node/seeded-ids.ts";
import { VirtualClock } from "../../ports/node/virtual-clock.ts";
import type { AgentApi } from "../../protocol/agent-api.ts";
import type { PersonaSource, VersionChain } from "../../protocol/definitions.ts";
import type { Envelope } from "../../protocol/envelope.ts";
import type { TaskExecutor } from "../../protocol/executor-api.ts";
import type { Answer, Attempt } from "../../protocol/mailbox-api.ts";
import type { PinnedWorkflow } from "../../protocol/pinned-workflow.ts";
import { notFound } from "../../shared/errors.ts";
import type { JsonObject } from "../../shared/json.ts";
import { listIds } from "../../shared/known-ids.ts";
import { FaultPlane, InjectedFault } from "../faults.ts";
import { failure, replyText, ScriptedModel, scriptedStream } from "../model-script.ts";
import { ConversationActor, type ConversationLife, RunActor, type RunLife, type RunWorld } from "./actors.ts";
import type { MortalLife } from "./mortal-actor.ts";
import { RunningWork } from "./running-work.ts";
import type { HttpAnswer } from "./scripted-http.ts";
import { type McpDoubles, mcpDoubles, type RemoteAnswer } from "./scripted-servers.ts";
import { isPlanned, watchLog } from "./watched-log.ts";
import { type FilesOptions, WorldFiles } from "./world-files.ts";
import { type WorldRecording, WorldTools } from "./world-tools.ts";

export const TENANT = "local";
/** A world that needs more steps is stuck. */
const MAX_STEPS = 100_000;
/** Time of a model's answer, and of an envelope. Virtual milliseconds. */
const MODEL_MS = 10;
const MAIL_MS = 1;
/** Time after which a sender stops sending a lost envelope. Virtual milliseconds. */
const LOST_MS = 30_000;

/** The parts of a test app that the world needs. */
export interface WorldParts {
  code: DeployedCode;
  agents: ReadonlyMap<string, { persona: PersonaSource; projectIds?: string[] }>;
  gate?: Gate;
  faults?: FaultPlane;
  /** Replaces the scripted model, for models of providers. Profiles stay as they are. */
  gateway?: ModelGateway;
  defaultProfile?: ModelProfile;
  /** Answers the requests of actions. */
  http?: HttpAnswer;
  /** The doubles of tools of MCP servers. */
  mcpTools?: McpDoubles;
  /** Answers for agents of other servers. */
  remoteAgents?: RemoteAnswer;
  files?: FilesOptions;
  /** Replaces the tools, for recorded results. */
  recorded?: WorldRecording;
}

const SCRIPTED: ModelProfile = { provider: "openai", modelId: "scripted", baseUrl: "http://model.test/v1" };

export class TestWorld implements RunWorld {
  readonly clock = new VirtualClock();
  readonly ids = seededIds(1, this.clock);
  readonly model = new ScriptedModel();
  readonly tasks = new ScriptedModel();
  readonly tools: WorldTools;
  readonly files: WorldFiles;
  /** The history in words. Its times are hours, minutes and seconds since the begin of the world. */
  readonly log: string[] = [];
  readonly #began = this.clock.now();
  /** Errors that no plan explains. */
  readonly incidents: string[] = [];
  /** Problems of requests of actions without an answer. */
  readonly unanswered: string[] = [];
  readonly conversations = new Map<string, ConversationActor>();
  readonly runs = new Map<string, RunActor>();
  readonly faults: FaultPlane;
  readonly bounds = {};
  /** The messages that the app has accepted. */
  readonly acknowledged: { conversationId: string; turnId: string; content: string }[] = [];
  readonly #registry: Registry;
  readonly #chains = new Map<string, Promise<VersionChain>>();
  readonly #running = new RunningWork();
  /** Requests to models and envelopes under way. */
  #underWay = 0;

  constructor(private readonly parts: WorldParts) {
    this.#registry = new Registry(parts.code, undefined, mcpDoubles(parts.mcpTools ?? {}));
    this.faults = parts.faults ?? new FaultPlane();
    this.files = new WorldFiles(this.clock, this.ids, TENANT, parts.files ?? {}, {
      report: (handle, progress) => this.#resultsOf(handle).report(handle, progress),
      complete: async (handle, outcome) => {
        await this.#resultsOf(handle).complete(handle, outcome);
      },
    });
    this.tools = new WorldTools(this, parts.code, {
      gateway: this.#taskGateway,
      defaultProfile: this.#defaultProfile,
      http: parts.http,
      mcpTools: parts.mcpTools ?? {},
      remoteAgents: parts.remoteAgents,
      recorded: parts.recorded,
      onMissing: (problem) => this.unanswered.push(problem),
    });
  }

  note(text: string): void {
    this.log.push(`${sinceBegin(this.clock.now() - this.#began)}  ${text}`);
  }

  #resultsOf(handle: string): OperationResults {
    return this.conversation(this.tools.deferredBy(handle)).awake().runtime.results;
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

  strikes(): boolean {
    const strikes = this.faults.cross("storage") !== undefined;
    if (strikes) this.note("An actor crashes.");
    return strikes;
  }

  swallow(error: unknown): void {
    if (isPlanned(error)) return;
    this.incidents.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }

  async travel(): Promise<void> {
    await this.clock.sleep(MAIL_MS);
  }

  async afterLook(): Promise<void> {}

  /** Kills all actors. They begin again on their storage when something calls them. */
  crash(): void {
    this.note("All actors crash.");
    for (const actor of this.#actors()) actor.kill();
  }

  close(): void {
    for (const actor of this.#actors()) {
      actor.kill();
      actor.database.close();
    }
    this.files.close();
  }

  /** Returns the versions that a new conversation of an agent pins. Throws `NOT_FOUND`. */
  chainOf(id: string): Promise<VersionChain> {
    const known = this.#chains.get(id) ?? this.#resolved(id);
    this.#chains.set(id, known);
    return this.during(known);
  }

  async #resolved(id: string): Promise<VersionChain> {
    const agent = this.parts.agents.get(id);
    if (agent === undefined) {
      const ids = listIds(id, [...this.parts.agents.keys()]);
      throw notFound(`The test app has no agent "${id}". It has: ${ids}.`);
    }
    const chain = await resolveChain(this.#registry, agent.persona, this.#defaultProfile, this.#complete);
    return this.parts.recorded?.chain(chain) ?? chain;
  }

  get #defaultProfile(): ModelProfile {
    return this.parts.defaultProfile ?? SCRIPTED;
  }

  /** Lets a script speak for the model of a profile. */
  readonly #complete = (profile: ModelProfile): ModelProfile => {
    if (this.parts.gateway !== undefined) return profile;
    const {
      provider: _provider,
      baseUrl: _url,
      apiKeySecret: _key,
      parameters: _parameters,
      ...rest
    } = profile;
    return { ...rest, ...SCRIPTED, modelId: profile.modelId };
  };

  projectsOf(id: string): string[] {
    return this.parts.agents.get(id)?.projectIds ?? ["default"];
  }

  readonly agent = async (_tenant: string, id: string): Promise<Pick<AgentApi, "persona">> => {
    const chain = await this.chainOf(id);
    return { persona: async () => ({ ok: true, value: { chain, projectIds: this.projectsOf(id) } }) };
  };

  workflow(reference: string): Promise<PinnedWorkflow> {
    const options = { defaultProfile: this.#defaultProfile, complete: this.#complete };
    return this.during(pinWorkflow(this.#registry, reference, options));
  }

  readonly checkedInput = ({ definition }: PinnedWorkflow, input: JsonObject) =>
    checkedRunInput(definition, input, "/input");

  onRun(_actor: RunActor, state: RunState): void {
    if (isOver(state)) this.note(`The run of ${state.record.workflow.id} has ended: ${state.status}.`);
  }

  contextOf(actor: ConversationActor, life: ConversationLife) {
    return {
      gateway: this.#gatewayFor(life),
      executor: this.tools.executorFor(life),
      gate: this.parts.gate ?? allowAll,
      knowledge: async (...request: Parameters<Artifacts["knowledge"]>) =>
        (await this.during(this.files.artifacts())).knowledge(...request),
      invite: async (_record: unknown, id: string) => ({ agent: { id, chain: await this.chainOf(id) } }),
      publish: () => void actor,
    };
  }

  tasksFor(life: RunLife): TaskExecutor {
    return this.tools.executorFor(life);
  }

  /** As `RunningWork.during`. */
  during<Value>(work: Promise<Value>, isTool?: boolean): Promise<Value> {
    return this.#running.during(work, isTool);
  }

  #gatewayFor(life: MortalLife): ModelGateway {
    const world = this;
    return {
      async *stream(request, signal) {
        if (!life.alive) throw new Error("dead");
        const { agentId, conversationId } = request.context;
        const fault = world.faults.cross("model");
        const who = agentId ?? "A task";
        world.note(
          `${who} asks its model.${fault === undefined ? "" : ` Fault: ${fault.kind} ${fault.when}.`}`,
        );
        world.#underWay += 1;
        try {
          if (fault?.kind === "crash" && fault.when === "before") world.#kill(conversationId);
          await world.clock.sleep(MODEL_MS, signal);
          if (!life.alive || signal.aborted) return;
          if (fault?.kind === "failure") {
            yield failure(request.profile.provider, "The provider failed.", true);
            return;
          }
          const source = world.parts.gateway?.stream(request, signal) ?? scriptedStream(world.model, request);
          const deltas = await world.during(collected(source), world.parts.gateway === undefined);
          if (fault?.kind === "crash") world.#kill(conversationId);
          world.note(`${who} gets: ${replyText(deltas)}`);
          if (life.alive) yield* deltas;
        } finally {
          world.#underWay -= 1;
        }
      },
      ...(world.parts.gateway?.accountOf && { accountOf: world.parts.gateway.accountOf }),
    };
  }

  #kill(conversationId: string | undefined): void {
    if (conversationId === undefined) return;
    this.note("The conversation crashes.");
    this.conversation(conversationId).kill();
  }

  get #taskGateway(): ModelGateway {
    return this.parts.gateway ?? { stream: (request) => scriptedStream(this.tasks, request) };
  }

  carry(sender: MortalLife, envelope: Envelope, attempt: Attempt): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    if (!sender.alive) return promise;
    const fault = this.faults.cross("mail");
    if (fault !== undefined)
      this.note(`An envelope ${envelope.type} has a fault: ${fault.kind} ${fault.when}.`);
    this.#underWay += 1;
    void promise.finally(() => (this.#underWay -= 1)).catch(() => undefined);
    const copies =
      fault?.kind === "duplicate" ? 2 : fault?.kind === "loss" && fault.when === "before" ? 0 : 1;
    const arrives = fault?.kind !== "loss";
    for (let copy = 0; copy < copies; copy++)
      this.clock.timer(fault?.kind === "delay" ? 5_000 : MAIL_MS + copy * 50, () => {
        this.#receive(envelope, { ...attempt }).then(
          (answer) => copy === 0 && arrives && this.clock.timer(MAIL_MS, () => resolve(answer)),
          (error: unknown) => {
            this.swallow(error);
            if (copy === 0) this.clock.timer(MAIL_MS, () => reject(error));
          },
        );
      });
    if (!arrives) this.clock.timer(LOST_MS, () => reject(new InjectedFault("The connection broke.")));
    return promise;
  }

  async #receive(envelope: Envelope, attempt: Attempt): Promise<Answer> {
    const { kind, id } = envelope.to;
    const actor = kind === "coordinator" ? this.run(id) : this.conversation(id);
    return actor.receive(structuredClone(envelope), attempt);
  }

  #actors(): (ConversationActor | RunActor)[] {
    return [...this.conversations.values(), ...this.runs.values()];
  }

  /** Reports whether the only work left waits for people, or for results from elsewhere. */
  get waitsForPeople(): boolean {
    if (this.#running.isBusy || this.#underWay > 0) return false;
    const conversations = [...this.conversations.values()].flatMap(({ life }) =>
      life?.runtime.exists ? [life.runtime.state] : [],
    );
    return (
      conversations.some((state) => waitingCalls(state).length > 0) ||
      conversations.some(({ active }) =>
        [...active.values()].some(({ operations }) => operations.some(({ status }) => status === "deferred")),
      ) ||
      [...this.runs.values()].some(
        ({ life }) => life?.runtime.exists && waitingGates(life.runtime.state).length > 0,
      )
    );
  }

  /** Works until `isDone`, until `until` on the clock, or until nothing is left to do. */
  async work(isDone: () => boolean, until = Number.POSITIVE_INFINITY): Promise<void> {
    const restore = watchLog(this.incidents, this.parts.faults !== undefined);
    try {
      await this.#work(isDone, until);
    } finally {
      restore();
    }
  }

  /** Calls an actor between two steps of work. */
  watched<Value>(act: () => Value): Value {
    const restore = watchLog(this.incidents, this.parts.faults !== undefined);
    try {
      return act();
    } finally {
      restore();
    }
  }

  async #work(isDone: () => boolean, until: number): Promise<void> {
    for (let step = 0; step < MAX_STEPS; step++) {
      await this.clock.advance(0);
      await this.#running.whileBusy(() => this.clock.advance(0));
      if (isDone()) return;
      const jobs = this.#actors().flatMap(({ due }) => due ?? []);
      const next = Math.min(...jobs, this.clock.nextDue ?? Number.POSITIVE_INFINITY);
      if (next === Number.POSITIVE_INFINITY && until === next) return;
      await this.clock.advance(Math.max(0, Math.min(next, until) - this.clock.now()));
      if (next > until) return;
      for (const actor of this.#actors()) actor.fire();
    }
    throw new Error("The test app does not come to rest. A tool or a model may repeat its work forever.");
  }
}

const HOUR_MS = 3_600_000;

/** Returns a time as `25:00:00.010`. */
function sinceBegin(milliseconds: number): string {
  const hours = String(Math.floor(milliseconds / HOUR_MS)).padStart(2, "0");
  return `${hours}:${new Date(milliseconds % HOUR_MS).toISOString().slice(14, 23)}`;
}

async function collected<Item>(source: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = [];
  for await (const item of source) items.push(item);
  return items;
}

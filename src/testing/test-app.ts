/**
 * A test app: the agents, tools and workflows of an application in plain Node.
 *
 * TESTAPP-1  `send` delivers a message once, also after crashes. It returns when the turn has ended, or waits for people.
 * TESTAPP-3  Files of repositories and artifacts are in memory, and survive crashes.
 * TESTAPP-2  Time passes only by work, as pauses between attempts, and by `clock.advance`.
 */
import { workspaceIn } from "../agents/conversation/core/state.ts";
import { waitingCalls } from "../agents/conversation/core/waiting-calls.ts";
import { isOver } from "../agents/coordinator/core/state.ts";
import { runView, waitingGates } from "../agents/coordinator/reads/run-views.ts";
import type { AnsweredBy } from "../protocol/approval.ts";
import type { Budget } from "../protocol/budget.ts";
import type { TurnOrder, TurnView } from "../protocol/conversation-schemas.ts";
import { stemOf, turnId } from "../protocol/ids.ts";
import type { TurnRecording } from "../protocol/recording.ts";
import type { ToolOutcome } from "../protocol/requests.ts";
import type { RunView } from "../protocol/run-schemas.ts";
import { defined } from "../shared/defined.ts";
import { invalid } from "../shared/errors.ts";
import type { Json, JsonObject, JsonValue } from "../shared/json.ts";
import { type TestAppOptions, worldParts } from "./app-options.ts";
import { millisecondsOf } from "./duration.ts";
import type { ScriptedModel } from "./model-script.ts";
import { type TestTurn, turnOf } from "./test-turn.ts";
import type { ConversationActor, ConversationLife } from "./world/actors.ts";
import { isDeath } from "./world/mortal-actor.ts";
import { TENANT, TestWorld } from "./world/test-world.ts";
import type { ToolRun } from "./world/tool-runs.ts";

/** The settings of a new conversation. */
export interface TestConversationOptions {
  /** Default: `user`. */
  user?: string;
  order?: TurnOrder;
  budget?: Budget;
}

/** The settings of a message. */
export interface TestMessage {
  /** Default: `user`. */
  user?: string;
  /** The JSON Schema of a structured answer. */
  schema?: JsonObject;
}

/** A call or a gate that waits for a person. */
export interface PendingApproval {
  kind: "tool" | "gate";
  operationId: string;
  /** The name of the tool; absent for a gate. */
  name?: string;
  /** The question of a gate; absent for a tool. */
  prompt?: string;
  input: JsonValue;
  conversationId?: string;
  runId?: string;
  /** The rule of the policy that asked; absent if the tool always asks. */
  policy?: AnsweredBy["policy"];
}

/** The clock of a test app. */
export interface TestClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /**
   * Moves the clock, and does all work that is due by then.
   * @example await app.clock.advance("1h");
   */
  advance(duration: number | string): Promise<void>;
}

/** Pause before a client repeats a message without an answer, in milliseconds. */
const REPEAT_MS = 1_000;
/** A message that is not accepted after so many attempts fails its test. */
const MAX_ATTEMPTS = 1_000;

export class TestApp {
  readonly #world: TestWorld;
  readonly #talks = new Map<string, Promise<TestConversation>>();
  /** Numbers of requests without an answer that an error has reported. */
  #reported = { models: 0, mistakes: 0, servers: 0 };
  readonly clock: TestClock;

  constructor(world: TestWorld) {
    this.#world = world;
    this.clock = {
      now: () => world.clock.now(),
      advance: (duration) => world.work(() => false, world.clock.now() + millisecondsOf(duration)),
    };
  }

  /** The script of the models. */
  get model(): ScriptedModel {
    return this.#world.model;
  }

  /** The script of the models that tasks call. */
  get taskModel(): ScriptedModel {
    return this.#world.tasks;
  }

  /** All runs of tools and actions, in the order of their begin. */
  get effects(): readonly ToolRun[] {
    return this.#world.tools.effects;
  }

  /** The history in words. */
  get history(): readonly string[] {
    return this.#world.log;
  }

  /** Sends a message to an agent, in the conversation of this agent and this user. */
  async send(agent: string, content: string, options: TestMessage = {}): Promise<TestTurn> {
    const { user = "user" } = options;
    const key = `${agent} ${user}`;
    const talk = this.#talks.get(key) ?? this.conversation(agent, { user });
    this.#talks.set(key, talk);
    return (await talk).send(content, options);
  }

  /** Begins a conversation with an agent. */
  async conversation(agent: string, options: TestConversationOptions = {}): Promise<TestConversation> {
    const world = this.#world;
    const { user = "user", ...settings } = options;
    const chain = await world.chainOf(agent);
    const [projectId = "default", ...others] = world.projectsOf(agent);
    const id = `conv_${world.ids.ulid()}`;
    const projectIds = others.length > 0 ? { projectIds: [projectId, ...others] } : {};
    const record = {
      ...{ id, tenant: TENANT, title: null, projectId, createdAt: world.clock.now() },
      participants: [
        { type: "user" as const, id: user },
        { type: "agent" as const, id: agent },
      ],
      agents: [{ id: agent, chain, ...projectIds }] as const,
      listed: false as const,
    };
    const actor = world.conversation(id);
    await this.#repeated(actor, async ({ runtime }) => {
      if (!runtime.exists) await runtime.create(record, settings);
    });
    return new TestConversation(id, agent, (content, more) => this.#say(actor, content, { user, ...more }));
  }

  /** Runs a workflow to its end, or until it waits for a person. */
  async run(workflow: string, input: JsonObject = {}): Promise<RunView> {
    const world = this.#world;
    const pinned = await world.workflow(workflow);
    const id = `run_${world.ids.ulid()}`;
    const actor = world.run(id);
    const record = {
      ...{ id, tenant: TENANT, projectId: "default", workflow: pinned, request: "", startedBy: "user" },
      stem: stemOf(world.ids.ulid()),
      input: world.checkedInput(pinned, input),
      createdAt: world.clock.now(),
    };
    world.note(`A user starts the workflow ${workflow}.`);
    await this.#repeated(actor, async ({ runtime }) => {
      if (!runtime.exists) await runtime.start(record);
    });
    const ended = () => attempt(() => isOver(actor.awake().runtime.state)) ?? false;
    await this.#work(() => ended() || world.waitsForPeople);
    return this.#read(() => runView(actor.awake().runtime));
  }

  /** Returns a run as it is now. */
  runOf(id: string): RunView {
    return this.#read(() => runView(this.#world.run(id).awake().runtime));
  }

  /** Works until nothing is left to do, or only people can continue. Returns the turn as it is then. */
  async settle(turn: TestTurn): Promise<TestTurn>;
  async settle(): Promise<undefined>;
  async settle(turn?: TestTurn): Promise<TestTurn | undefined> {
    const world = this.#world;
    await this.#work(() => world.waitsForPeople);
    return turn && this.turn(turn.conversationId, turn.id);
  }

  /** Returns the calls and the gates that wait for a person. */
  approvals(): PendingApproval[] {
    const calls = [...this.#world.conversations.values()].flatMap((actor) =>
      this.#read(() => waitingCalls(actor.awake().runtime.state)),
    );
    const gates = [...this.#world.runs.values()].flatMap((actor) =>
      this.#read(() => {
        const { runtime } = actor.awake();
        return runtime.exists ? waitingGates(runtime.state) : [];
      }),
    );
    return [...calls, ...gates].map(({ approval }): PendingApproval => {
      const { kind, operationId, input = {} } = approval;
      if (approval.kind === "gate") {
        const { runId, prompt } = approval;
        return { kind, operationId, input, prompt, runId };
      }
      const { name, conversationId, policy } = approval;
      return { kind, operationId, input, name, conversationId, ...defined({ policy }) };
    });
  }

  /** Approves a call. Then all work continues. */
  async approve({ operationId, conversationId }: PendingApproval): Promise<void> {
    await this.#decide(operationId, conversationId, true);
  }

  /** Denies a call. Then all work continues. */
  async deny({ operationId, conversationId }: PendingApproval, reason?: string): Promise<void> {
    await this.#decide(operationId, conversationId, false, reason);
  }

  async #decide(id: string, conversationId: string | undefined, approved: boolean, reason?: string) {
    if (conversationId === undefined)
      throw invalid("A gate takes an answer. Use `app.answer(gate, answer)`.");
    const answer = { approved, caller: { type: "user" as const, userId: "user" }, ...defined({ reason }) };
    await this.#repeated(this.#world.conversation(conversationId), ({ runtime }) =>
      runtime.results.approve(id, answer),
    );
    await this.settle();
  }

  /** Answers a gate of a run. Then all work continues. */
  async answer({ operationId, runId }: PendingApproval, answer: Json): Promise<void> {
    if (runId === undefined) throw invalid("A call takes no answer. Use `app.approve(call)`.");
    await this.#repeated(this.#world.run(runId), async ({ runtime }) =>
      runtime.answer(operationId, answer, "user"),
    );
    await this.settle();
  }

  /** Completes a deferred call by its handle. Then all work continues. */
  async complete(handle: string, outcome: ToolOutcome): Promise<void> {
    const world = this.#world;
    const actor = world.conversation(world.tools.deferredBy(handle));
    await this.#repeated(actor, ({ runtime }) => world.during(runtime.results.complete(handle, outcome)));
    await this.settle();
  }

  /** Kills all actors, as a deployment or a failed machine does. Stored work continues with the next work of the app. */
  crash(): void {
    this.#world.crash();
  }

  /** Returns the recording of an ended turn, as a fixture. */
  recording({ conversationId, id }: Pick<TestTurn, "conversationId" | "id">): TurnRecording {
    return this.#read(() => {
      const { runtime, queries } = this.#world.conversation(conversationId).awake();
      return queries.recording(runtime.state, id, {});
    });
  }

  /**
   * Returns a file of a conversation, with uncommitted changes; `null` without the file. Default of `repo`: the first repository.
   * @example expect(await app.file(turn, "src/sum.ts")).toContain("a + b");
   */
  async file(
    { conversationId }: Pick<TestTurn, "conversationId">,
    path: string,
    repo?: string,
  ): Promise<string | null> {
    const { record } = this.#read(() => this.#world.conversation(conversationId).awake().runtime.state);
    return this.#world.files.read(workspaceIn(record).id, record.projectId, path, repo);
  }

  /** Closes the databases of the app. */
  close(): void {
    this.#world.close();
  }

  async #say(
    actor: ConversationActor,
    content: string,
    { user, schema }: TestMessage & { user: string },
  ): Promise<TestTurn> {
    const world = this.#world;
    const signal = {
      type: "conversation.user.message" as const,
      id: `message_${world.ids.ulid()}`,
      caller: { type: "user" as const, userId: user },
      data: { content, ...(schema && { output: { name: "answer", schema } }) },
    };
    world.note(`${user}: ${content}`);
    const fault = world.faults.cross("message");
    const accept = () => this.#repeated(actor, ({ runtime }) => runtime.accept(signal));
    if (fault?.when === "before" && fault.kind === "loss") await this.clock.advance(REPEAT_MS);
    let { turnId: id } = await accept();
    if (fault !== undefined) {
      world.note(`The client repeats the message: ${fault.kind}.`);
      id = (await accept()).turnId;
    }
    world.acknowledged.push({ conversationId: actor.id, turnId: id, content });
    await this.#work(() => !isActive(actor, id) || world.waitsForPeople);
    return this.turn(actor.id, id);
  }

  /** Works until `isDone`. Throws `INVALID_INPUT` if no script has answered a request to a model or to a server. */
  async #work(isDone: () => boolean): Promise<void> {
    const { model, unanswered } = this.#world;
    await this.#world.work(isDone);
    const [missing] = [
      ...model.missing.slice(this.#reported.models),
      ...model.mistakes.slice(this.#reported.mistakes),
      ...unanswered.slice(this.#reported.servers),
    ];
    this.#reported = {
      ...{ models: model.missing.length, mistakes: model.mistakes.length },
      servers: unanswered.length,
    };
    if (missing !== undefined) throw invalid(missing);
  }

  /** Returns a turn as it is now. Throws `NOT_FOUND`. */
  turn(conversationId: string, id: string): TestTurn {
    const view: TurnView = this.#read(() => {
      const { runtime, queries } = this.#world.conversation(conversationId).awake();
      return queries.turn(runtime.state, id);
    });
    return turnOf(view);
  }

  /** Repeats a request that a crash interrupted, as a client does. */
  async #repeated<Life extends { alive: boolean }, Value>(
    actor: { awake(): Life },
    act: (life: Life) => Value | Promise<Value>,
  ): Promise<Value> {
    const world = this.#world;
    for (let count = 0; count < MAX_ATTEMPTS; count++) {
      let settled: { value: Value } | { error: unknown } | undefined;
      let life: Life | undefined;
      const begin = async () => {
        life = actor.awake();
        return act(life);
      };
      world.watched(begin).then(
        (value) => (settled = { value }),
        (error: unknown) => (settled = { error }),
      );
      await world.work(() => settled !== undefined || life?.alive !== true, world.clock.now());
      if (settled !== undefined && "value" in settled) return settled.value;
      if (settled !== undefined && !isDeath(settled.error)) throw settled.error;
      await this.clock.advance(REPEAT_MS);
    }
    throw new Error("The actor accepts no request. It crashes at each attempt.");
  }

  #read<Value>(read: () => Value): Value {
    for (let count = 0; count < MAX_ATTEMPTS; count++) {
      const found = attempt(() => ({ value: this.#world.watched(read) }));
      if (found !== undefined) return found.value;
    }
    throw new Error("The actor cannot be read. It crashes at each attempt.");
  }
}

/** A conversation of a test app. */
export class TestConversation {
  constructor(
    readonly id: string,
    readonly agent: string,
    /** Sends a message. Returns when its turn has ended, or waits for people. */
    readonly send: (content: string, options?: TestMessage) => Promise<TestTurn>,
  ) {}
}

/**
 * Makes a test app: your agents, tools and workflows in plain Node, with a scripted model and a virtual clock.
 *
 * @example
 * const app = createTestApp({ libraries: [library] });
 * app.model.script(call("add", { a: 1, b: 2 }), "It is 3.");
 * const turn = await app.send("guide", "What is 1 + 2?");
 * expect(turn.text).toBe("It is 3.");
 */
export function createTestApp(options: TestAppOptions): TestApp {
  return new TestApp(new TestWorld(worldParts(options)));
}

function isActive(actor: ConversationActor, id: string): boolean {
  const active = (life: ConversationLife) => [...life.runtime.state.active.values()];
  return attempt(() => active(actor.awake()).some((turn) => turnId(turn) === id)) ?? true;
}

/** Returns the value; `undefined` if the actor dies. */
function attempt<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (isDeath(error)) return undefined;
    throw error;
  }
}

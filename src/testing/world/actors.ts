/** Conversations and runs in Node: the code of the actors on the ports for Node, with real mailboxes. */
import { adapterFor } from "../../adapters/formats/lookup.ts";
import type { RuntimeContext } from "../../agents/conversation/context.ts";
import { Opening } from "../../agents/conversation/inbound/opening.ts";
import { outgoing, takeEnvelopes } from "../../agents/conversation/mailbox-handlers.ts";
import { ConversationQueries } from "../../agents/conversation/reads/queries.ts";
import { calledRun } from "../../agents/conversation/results/call-results.ts";
import { ConversationRuntime } from "../../agents/conversation/runtime.ts";
import { takeAgentAnswers } from "../../agents/coordinator/agent-nodes.ts";
import { takeChildRuns } from "../../agents/coordinator/child-runs.ts";
import { beginsWork } from "../../agents/coordinator/core/run-envelopes.ts";
import type { RunState } from "../../agents/coordinator/core/state.ts";
import { RunRuntime } from "../../agents/coordinator/run-runtime.ts";
import { allowAll } from "../../policy/gate.ts";
import type { Ids } from "../../ports/ids.ts";
import type { AgentApi } from "../../protocol/agent-api.ts";
import type { TaskExecutor } from "../../protocol/executor-api.ts";
import type { PinnedWorkflow } from "../../protocol/pinned-workflow.ts";
import type { ChildRun, ChildRunApi } from "../../protocol/run-call.ts";
import { asDone, asResult } from "../../shared/errors.ts";
import type { JsonObject } from "../../shared/json.ts";
import { type LifePorts, MortalActor, type MortalLife, type MortalWorld } from "./mortal-actor.ts";
import { noMail, quietRun } from "./no-mail.ts";

/** The members of a conversation's context that differ between worlds. */
export type ConversationPorts = Pick<RuntimeContext, "gateway" | "executor" | "publish"> &
  Partial<RuntimeContext>;

export interface ConversationWorld extends MortalWorld {
  readonly ids: Ids;
  agent(tenant: string, id: string): Promise<Pick<AgentApi, "persona">>;
  contextOf(actor: ConversationActor, life: ConversationLife): ConversationPorts;
}

export interface ConversationLife extends MortalLife {
  runtime: ConversationRuntime;
  queries: ConversationQueries;
}

export class ConversationActor extends MortalActor<ConversationWorld, ConversationLife> {
  constructor(world: ConversationWorld, tenant: string, id: string) {
    super(world, { kind: "conversation", tenant, id });
  }

  protected build(life: ConversationLife, { database, keyValue, clock, wakeup }: LifePorts): void {
    const { world } = this;
    const { ids } = world;
    const mail = outgoing(life.mailbox);
    const context: RuntimeContext = {
      ...{ ...noMail, database, keyValue, clock, ids, ...mail },
      adapters: adapterFor,
      gate: allowAll,
      armWakeup: wakeup("window").arm,
      ...world.contextOf(this, life),
    };
    const runtime = new ConversationRuntime(context);
    const opening = new Opening({
      ...{ clock, ids, keyValue, database, runtime },
      agent: world.agent,
      location: () => ({}),
      send: mail.send,
      expel: () => undefined,
    });
    takeEnvelopes(life.mailbox, { ...context, send: mail.send, opening, runtime });
    Object.assign(life, {
      runtime,
      queries: new ConversationQueries(runtime.store),
      jobs: {
        window: () => {
          runtime.reconcile();
          return runtime.exists ? runtime.dueIn : null;
        },
      },
      wake: async () => {
        if (runtime.exists) await runtime.wake();
      },
      whenArmed: () => runtime.whenArmed(),
    } satisfies Partial<ConversationLife>);
  }
}

export interface RunWorld extends ConversationWorld {
  /** The bounds of a run that a call starts. */
  readonly bounds: Pick<ChildRun, "width" | "share">;
  conversation(id: string): ConversationActor;
  run(id: string): RunActor;
  /** Takes the time of a request from actor to actor. Throws if the network fails. */
  travel(): Promise<void>;
  /** Waits between the check of the run above and the commit of the start. */
  afterLook(): Promise<void>;
  workflow(reference: string): PinnedWorkflow | Promise<PinnedWorkflow>;
  checkedInput(workflow: PinnedWorkflow, input: JsonObject): JsonObject;
  tasksFor(life: RunLife): TaskExecutor;
  /** Takes each commit of a run. */
  onRun(actor: RunActor, state: RunState): void;
}

export interface RunLife extends MortalLife {
  runtime: RunRuntime;
}

export class RunActor extends MortalActor<RunWorld, RunLife> {
  constructor(world: RunWorld, tenant: string, id: string) {
    super(world, { kind: "coordinator", tenant, id });
  }

  protected build(life: RunLife, { database, keyValue, clock, wakeup }: LifePorts): void {
    const { world } = this;
    const { ids } = world;
    const runtime = new RunRuntime(
      {
        ...quietRun,
        ...{ database, keyValue, clock, ids },
        executor: world.tasksFor(life),
        armWakeup: wakeup("run").arm,
        send: (envelope) => life.mailbox.send(envelope, { owed: !beginsWork(envelope) }),
        outboxRoom: () => life.mailbox.room(),
        withdraw: ({ to, type }) => life.mailbox.withdraw(to, type),
      },
      ({ state }) => world.onRun(this, state),
    );
    takeAgentAnswers(life.mailbox, {
      runtime,
      sender: () => Promise.reject(new Error("Answers are short.")),
    });
    takeChildRuns(life.mailbox, {
      ...{ clock, ids, keyValue, runtime },
      listing: { publish: () => Promise.resolve() },
      run: async (_tenant, id) => {
        await world.travel();
        return childRunApiOf(() => world.run(id).awake(), world.afterLook);
      },
      conversation: async (_tenant, id) => {
        await world.travel();
        return {
          calledRun: (address) =>
            asResult(() => calledRun(world.conversation(id).awake().runtime.state, address)),
        };
      },
      checkPlace: () => undefined,
      location: () => ({}),
      permitRun: async () => false,
      workflow: async (_tenant, reference) =>
        world.workflow(typeof reference === "string" ? reference : `${reference.library}/${reference.id}`),
      checkedInput: world.checkedInput,
      bounds: world.bounds,
    });
    Object.assign(life, {
      runtime,
      jobs: {
        run: () => {
          runtime.reconcile();
          return runtime.exists ? runtime.dueIn : null;
        },
      },
      wake: async () => {
        if (runtime.exists) await runtime.wake();
      },
      whenArmed: () => runtime.whenArmed(),
    } satisfies Partial<RunLife>);
  }
}

function childRunApiOf(life: () => RunLife, afterLook: () => Promise<void>): ChildRunApi {
  return {
    childRun: (address) =>
      asResult(async () => {
        const found = life().runtime.childRun(address);
        await afterLook();
        return found;
      }),
    admitRun: (child) => asDone(() => life().runtime.admitRun(child, 10_000)),
    partResult: (address) => asResult(() => life().runtime.partResult(address)),
  };
}

/** The actors of a simulation of workflow tools: conversations, and runs. */
import { adapterFor } from "../../../src/adapters/formats/lookup.ts";
import { calledRun } from "../../../src/agents/conversation/call-results.ts";
import { outgoing, takeEnvelopes } from "../../../src/agents/conversation/mailbox-handlers.ts";
import { Opening } from "../../../src/agents/conversation/opening.ts";
import { ConversationRuntime } from "../../../src/agents/conversation/runtime.ts";
import { takeAgentAnswers } from "../../../src/agents/coordinator/agent-nodes.ts";
import { takeChildRuns } from "../../../src/agents/coordinator/child-runs.ts";
import { graphOf } from "../../../src/agents/coordinator/core/graph.ts";
import { beginsWork } from "../../../src/agents/coordinator/core/run-envelopes.ts";
import { definitionOf, isOver, type RunState } from "../../../src/agents/coordinator/core/state.ts";
import { startsRun } from "../../../src/agents/coordinator/core/tree-room.ts";
import { RunRuntime } from "../../../src/agents/coordinator/run-runtime.ts";
import { allowAll } from "../../../src/policy/gate.ts";
import type { ChildRunApi } from "../../../src/protocol/run-call.ts";
import { asDone, asResult } from "../../../src/shared/errors.ts";
import { noMail, quietRun } from "../../support/no-mail.ts";
import { type LifePorts, MortalActor, type MortalLife } from "../mortal-actor.ts";
import { conversationLife } from "../trees/actor.ts";
import { type FlowWorld, TENANT } from "./world.ts";

export interface ConversationLife extends MortalLife {
  runtime: ConversationRuntime;
}

export class ConversationActor extends MortalActor<FlowWorld, ConversationLife> {
  constructor(world: FlowWorld, id: string) {
    super(world, { kind: "conversation", tenant: TENANT, id });
  }

  protected build(life: ConversationLife, { database, keyValue, clock, wakeup }: LifePorts): void {
    const { world, id } = this;
    const { ids } = world;
    const context: ConstructorParameters<typeof ConversationRuntime>[0] = {
      ...{ ...noMail, database, keyValue, clock, ids, ...outgoing(life.mailbox) },
      gateway: world.gatewayFor(life, id),
      adapters: adapterFor,
      executor: world.executorFor(life),
      gate: allowAll,
      armWakeup: wakeup("window").arm,
      publish: (frames) => world.ask(this, frames),
    };
    const runtime = new ConversationRuntime(context);
    const opening = new Opening({
      ...{ ...context, runtime },
      agent: world.agent,
      location: () => ({}),
      expel: () => undefined,
    });
    takeEnvelopes(life.mailbox, { ...context, opening, runtime });
    Object.assign(life, conversationLife(runtime), { runtime });
  }
}

export interface RunLife extends MortalLife {
  runtime: RunRuntime;
}

export class RunActor extends MortalActor<FlowWorld, RunLife> {
  #isQueued = false;

  constructor(world: FlowWorld, id: string) {
    super(world, { kind: "coordinator", tenant: TENANT, id });
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
        room: () => life.mailbox.room(),
        withdraw: ({ to, type }) => life.mailbox.withdraw(to, type),
      },
      ({ state }) => {
        world.openGates(this, state);
        this.#count(state);
      },
    );
    takeAgentAnswers(life.mailbox, {
      runtime,
      sender: () => Promise.reject(new Error("Answers are short.")),
    });
    takeChildRuns(life.mailbox, {
      ...{ clock, ids, keyValue, runtime },
      run: async (_tenant, id) => {
        await world.travel();
        return doorOf(() => world.run(id).awake(), world.afterLook);
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
      workflow: async (_tenant, reference) =>
        world.workflow(typeof reference === "string" ? reference : reference.id),
      checkedInput: (_workflow, input) => input,
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
    });
  }

  /** Counts the runs that end while starts wait for room. */
  #count(state: RunState): void {
    if (isOver(state) && this.#isQueued) this.world.overtaken += 1;
    const graph = graphOf(definitionOf(state));
    this.#isQueued = [...state.tokens.values()].some((token) => startsRun(graph, token));
  }
}

function doorOf(life: () => RunLife, afterLook: () => Promise<void>): ChildRunApi {
  return {
    childRun: (address) =>
      asResult(async () => {
        const found = life().runtime.childRun(address);
        await afterLook();
        return found;
      }),
    admitRun: () => asDone(() => life().runtime.admitRun(10_000)),
    partResult: (address) => asResult(() => life().runtime.partResult(address)),
  };
}

/** The actor of a conversation in a tree of calls. */
import { adapterFor } from "../../../src/adapters/formats/lookup.ts";
import type { ConversationState } from "../../../src/agents/conversation/core/state.ts";
import { outgoing, takeEnvelopes } from "../../../src/agents/conversation/mailbox-handlers.ts";
import { Opening } from "../../../src/agents/conversation/opening.ts";
import { ConversationRuntime } from "../../../src/agents/conversation/runtime.ts";
import { allowAll } from "../../../src/policy/gate.ts";
import { AGENT_CANCEL } from "../../../src/protocol/agent-call.ts";
import { defined } from "../../../src/shared/defined.ts";
import { noMail } from "../../support/no-mail.ts";
import { type LifePorts, MortalActor, type MortalLife } from "../mortal-actor.ts";
import { TENANT, type TreeWorld } from "./world.ts";

/** One life of an actor. */
export interface Life extends MortalLife {
  runtime: ConversationRuntime;
  opening: Opening;
}

export class TreeActor extends MortalActor<TreeWorld, Life> {
  /** It has stopped a call, or waited too long for it. */
  hasGivenUp = false;

  constructor(world: TreeWorld, id: string) {
    super(world, { kind: "conversation", tenant: TENANT, id });
  }

  /** The state in memory; `null` for an actor that is dead, or was not created. */
  get state(): ConversationState | null {
    const { life } = this;
    return life?.runtime.exists ? life.runtime.state : null;
  }

  protected build(life: Life, { database, keyValue, clock, wakeup }: LifePorts): void {
    const { world, id } = this;
    const { ids } = world;
    const mail = outgoing(life.mailbox);
    const context: ConstructorParameters<typeof ConversationRuntime>[0] = {
      ...noMail,
      database,
      keyValue,
      clock,
      ids,
      gateway: world.gatewayFor(life, id),
      adapters: adapterFor,
      executor: { run: () => Promise.reject(new Error("No agent has code.")) },
      gate: allowAll,
      armWakeup: wakeup("window").arm,
      ...defined({ calls: world.plan.calls }),
      ...mail,
      send: (envelope) => {
        if (envelope.type === AGENT_CANCEL) this.hasGivenUp = true;
        return mail.send(envelope);
      },
      invite: (_record, agent) => world.invite(agent),
      publish: (frames) => world.ask(this, frames),
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
    Object.assign(life, conversationLife(runtime), { runtime, opening });
  }
}

/** Returns the parts of the life of a conversation that its jobs and its wakes need. */
export function conversationLife(
  runtime: ConversationRuntime,
): Pick<MortalLife, "jobs" | "wake" | "whenArmed"> {
  return {
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
  };
}

/** The other actors of a recorded conversation, on the same clock: called conversations, and agents. */

import { LeaseStore } from "../../../src/agents/agent/lease-store.ts";
import { AgentStore } from "../../../src/agents/agent/store.ts";
import type { ActorStores } from "../../../src/agents/base/storage/schema-upgrade.ts";
import { BUDGET_LEASE, leaseRequestSchema } from "../../../src/protocol/budget-lease.ts";
import type { VersionChain } from "../../../src/protocol/definitions.ts";
import type { ActorAddress } from "../../../src/protocol/envelope.ts";
import type { Answer } from "../../../src/protocol/mailbox-api.ts";
import { defined } from "../../../src/shared/defined.ts";
import type { Json } from "../../../src/shared/json.ts";
import { validate } from "../../../src/shared/validation.ts";
import { toolsOnly } from "./library.ts";
import { type Receiver, Stage } from "./stage.ts";
import { seedOf } from "./take.ts";

/**
 * Connects a conversation with the others. A call to an unknown conversation opens a new conversation. Agents lease from the stores of
 * `bank`, and note the memories that they get.
 */
export async function connect(stage: Stage, known: readonly Stage[] = [], bank?: ActorStores): Promise<void> {
  const { peers } = stage;
  // The called agent asks before it refunds.
  const chain = await stage.chain(toolsOnly("refund"));
  const others = new Map<string, Stage>([[idOf(stage), stage]]);
  const join = (other: Stage) => {
    other.isOpen = stage.isOpen;
    others.set(idOf(other), other);
    peers.push(other);
    other.route = route;
    return other;
  };
  const route = ({ kind, id }: ActorAddress): Receiver => {
    if (kind === "agent") return agentOf(id, bank);
    const found = others.get(id) ?? join(opened(id, stage, chain));
    return found.life.mailbox;
  };
  stage.route = route;
  for (const other of known) join(other);
}

const idOf = (stage: Stage) => (stage.life.runtime.exists ? stage.life.runtime.state.record.id : stage.id);

/** Returns the actor of a conversation that a call may open. */
function opened(id: string, { clock }: Stage, chain: VersionChain): Stage {
  const stage = new Stage(undefined, seedOf(id), clock);
  stage.id = id;
  stage.calledChain = chain;
  return stage;
}

function agentOf(id: string, bank?: ActorStores): Receiver {
  return {
    async receive({ type, from, body }): Promise<Answer> {
      const result: unknown =
        type === BUDGET_LEASE && bank !== undefined ? lease(bank, id, from.id, body) : { outcomes: [] };
      return { type: "done", result: result as Json };
    },
  };
}

function lease(bank: ActorStores, id: string, conversationId: string, body: Json): object {
  const { budget = {} } = new AgentStore(bank, () => id).identity();
  return defined(new LeaseStore(bank).apply(conversationId, budget, validate(leaseRequestSchema, body)));
}

/** Adds regenerated turns and edited messages to the plan of a conversation. */
import type { Random } from "../../src/testing/random.ts";
import type { ActPlan, ClientPlan, ConversationPlan, MessagePlan } from "./plan.ts";
import { MOMENTS } from "./plan.ts";

/**
 * Lets users of a sixth of the conversations replace turns of theirs. `message` generates the edited messages. Conversations that
 * compact themselves stay as they are.
 */
export function withReplacements(
  plan: ConversationPlan,
  random: Random,
  message: (random: Random) => MessagePlan,
): ConversationPlan {
  if (!random.chance(0.42) || plan.memory !== undefined) return plan;
  const clients = plan.clients.map((client, index): ClientPlan => {
    const own = random.fork(`client ${index}`);
    if (client.messages.length === 0 || own.chance(0.2)) return client;
    const acts = own.list(own.small(1, 3), (n) => replacement(own.fork(`act ${n}`), message));
    return { ...client, acts: [...(client.acts ?? []), ...acts] };
  });
  return { ...plan, clients };
}

function replacement(random: Random, message: (random: Random) => MessagePlan): ActPlan {
  const does = random.pick(["regenerate", "edit"] as const);
  return {
    does,
    whose: random.chance(0.7) ? "own" : "past",
    ...(does === "edit" ? { message: message(random.fork("message")) } : {}),
    // Most wait for a turn that is over.
    ...(random.chance(0.6) ? { upon: "over" } : random.chance(0.8) ? { upon: random.pick(MOMENTS) } : {}),
    nth: random.small(1, 3),
    pause: random.chance(0.5) ? random.small(0, 60) : random.small(0, 4_000),
    ...(random.chance(0.35) ? { again: random.small(0, 500) } : {}),
  };
}

/** Adds forks to the plan of a conversation, and faults to the forks of a plan. */
import type { Random } from "../../src/testing/random.ts";
import type { ClientPlan, ConversationPlan, Fault, ForkPlan, MessagePlan, Plan, Port } from "./plan.ts";
import { MOMENTS } from "./plan.ts";
import { plannedForks } from "./planned-forks.ts";

/** Lets a user of a sixth of the conversations fork it. `message` generates the messages in the forks. */
export function withForks(
  plan: ConversationPlan,
  random: Random,
  message: (random: Random) => MessagePlan,
): ConversationPlan {
  const speaking = plan.clients.flatMap(({ messages }, index) => (messages.length > 0 ? [index] : []));
  if (!random.chance(0.17) || speaking.length === 0) return plan;
  const chosen = random.pick(speaking);
  const forks = random.list(random.small(1, 2), (n) => forkPlan(random.fork(`fork ${n}`), message));
  return {
    ...plan,
    clients: plan.clients.map(
      (client, index): ClientPlan => (index === chosen ? { ...client, forks } : client),
    ),
  };
}

function forkPlan(random: Random, message: (random: Random) => MessagePlan): ForkPlan {
  return {
    whose: random.pick(["own", "past"] as const),
    // Most wait for a turn that is over.
    ...(random.chance(0.7) ? { upon: "over" } : random.chance(0.8) ? { upon: random.pick(MOMENTS) } : {}),
    nth: random.small(1, 3),
    pause: random.chance(0.5) ? random.small(0, 60) : random.small(0, 4_000),
    ...(random.chance(0.35) ? { again: random.small(0, 500) } : {}),
    ...(random.chance(0.85) ? { message: message(random.fork("message")) } : {}),
    ...(random.chance(0.6) ? { erases: random.int(0, 30) } : {}),
  };
}

/** The ports that a fork crosses. Half of the faults are between its source and itself. */
const BETWEEN = ["fork.request", "fork.answer"] as const satisfies Port[];
const WITHIN = [
  "sql.run",
  "sql.all",
  "sql.transaction",
  "sql.commit",
  "kv.put",
  "window.open",
  "publish",
  "directory.put",
  "model.request",
  "model.piece",
  "object.get",
  "http.request",
  "http.answer",
  "alarm",
  "idle",
] as const satisfies Port[];

/** Adds faults to most forks. `fault` generates a fault at a port. */
export function withForkFaults(
  plan: Plan,
  random: Random,
  fault: (random: Random, port: Port, conversation: number) => Fault,
): Plan {
  const faults = plannedForks(plan).flatMap(({ number }) => {
    const own = random.fork(`fork ${number}`);
    return own.list(own.chance(0.25) ? 0 : own.small(1, 4), (n) => {
      const drawn = own.fork(`fault ${n}`);
      return fault(drawn, drawn.chance(0.5) ? drawn.pick(BETWEEN) : drawn.pick(WITHIN), number);
    });
  });
  return { ...plan, faults: [...plan.faults, ...faults] };
}

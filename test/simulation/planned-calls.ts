/** The messages and the tool calls of a plan, by their keys. */
import { tagOf } from "./model-script.ts";
import type { CallPlan, ClientPlan, MessagePlan, Plan } from "./plan.ts";
import { plannedForks } from "./planned-forks.ts";

/** Returns the messages of a plan by their tags, with the edited messages and the messages in forks. */
export function plannedMessages(plan: Plan): Map<string, MessagePlan> {
  const found = new Map<string, MessagePlan>();
  plan.conversations.forEach(({ clients }, conversation) => {
    clients.forEach(({ messages, acts = [] }, client) => {
      messages.forEach((message, index) => {
        found.set(tagOf(conversation, client, index), message);
      });
      acts.forEach(({ message }, index) => {
        if (message !== undefined)
          found.set(tagOf(conversation, client, editIndex({ messages }, index)), message);
      });
    });
  });
  for (const { number, fork } of plannedForks(plan))
    if (fork.message !== undefined) found.set(tagOf(number, 0, 0), fork.message);
  return found;
}

/** Returns the number of an act's edited message among the messages of its client. */
export function editIndex({ messages }: Pick<ClientPlan, "messages">, act: number): number {
  return messages.length + act;
}

/** Returns the planned tool calls, by the keys in their arguments. */
export function plannedCalls(plan: Plan): { get(key: string): CallPlan | undefined } {
  const found = new Map<string, CallPlan>();
  for (const [tag, { replies }] of plannedMessages(plan)) {
    replies.forEach(({ calls }, round) => {
      calls.forEach((call, position) => {
        found.set(`${tag}.${round}.${position}`, call);
      });
    });
  }
  // All versions of a turn have the same plan.
  return { get: (key) => found.get(key.replace(/~\d+/, "")) };
}

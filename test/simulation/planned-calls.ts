/** The tool calls of a plan, by their keys in the arguments. */
import { tagOf } from "./model-script.ts";
import type { CallPlan, Plan } from "./plan.ts";

export function plannedCalls(plan: Plan): Map<string, CallPlan> {
  const found = new Map<string, CallPlan>();
  plan.conversations.forEach(({ clients }, conversation) => {
    clients.forEach(({ messages }, client) => {
      messages.forEach(({ replies }, index) => {
        replies.forEach(({ calls }, round) => {
          calls.forEach((call, position) => {
            found.set(`${tagOf(conversation, client, index)}.${round}.${position}`, call);
          });
        });
      });
    });
  });
  return found;
}

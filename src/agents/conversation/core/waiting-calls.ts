/** The calls of a conversation that wait for people, as the inbox lists them. Pure. */
import { approversOf } from "../../../protocol/approval.ts";
import { operationId, turnId } from "../../../protocol/ids.ts";
import type { ListedApproval } from "../../../protocol/waiting-approvals.ts";
import { defined } from "../../../shared/defined.ts";
import { toIso } from "../../../shared/time.ts";
import { awaitsApproval } from "./operation.ts";
import { answeredBy, shownCall } from "./shown-call.ts";
import { type ConversationIdentity, type ConversationState, chainOf } from "./state.ts";
import type { Transition } from "./transition.ts";
import type { Turn } from "./turn.ts";
import { openOperations } from "./turn-operations.ts";

export function waitingCalls({
  record,
  active,
}: Pick<ConversationState, "record" | "active">): ListedApproval[] {
  const readers = readersOf(record);
  return [...active.values()].flatMap((turn) =>
    openOperations(turn)
      .filter(awaitsApproval)
      .map((operation): ListedApproval => {
        const { item, name, deadline, reply } = operation;
        const { input, target } = shownCall(chainOf(record, turn.agentId), operation);
        const asked = answeredBy(record, turn, operation);
        const approval = {
          kind: "tool" as const,
          operationId: operationId(turn, item),
          projectId: record.projectId,
          conversationId: record.id,
          turnId: turnId(turn),
          agentId: turn.agentId,
          ...{ name, input, ...defined({ target }), ...asked },
          requestedAt: toIso(turn.replies[reply]?.at ?? turn.createdAt),
          ...defined({ expiresAt: deadline === undefined ? undefined : toIso(deadline) }),
        };
        return { approval, approvers: approversOf(asked, readers) };
      }),
  );
}

/** Reports whether a commit changes the calls that wait, or who may answer them. */
export function changesWaiting(
  before: ConversationState,
  after: ConversationState,
  { touched }: Pick<Transition, "touched">,
): boolean {
  const itemsOf = (turn: Turn | undefined) =>
    turn === undefined
      ? ""
      : openOperations(turn)
          .filter(awaitsApproval)
          .map(({ item }) => item)
          .join();
  for (const n of touched.keys())
    if (itemsOf(before.active.get(n)) !== itemsOf(after.active.get(n))) return true;
  const isSame =
    before.record === after.record ||
    readersOf(before.record).join("\n") === readersOf(after.record).join("\n");
  return !isSame && [...after.active.values()].some((turn) => itemsOf(turn) !== "");
}

function readersOf({ participants, call }: Pick<ConversationIdentity, "participants" | "call">): string[] {
  const users = participants.filter(({ type }) => type === "user").map(({ id }) => id);
  return [...new Set([...users, ...(call?.readers ?? [])])];
}

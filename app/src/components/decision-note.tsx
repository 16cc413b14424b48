/** Why a call was denied, or waited for a person: the decisions of a policy in the journal. */
import { useCallback, useContext } from "react";
import type { OperationState } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { ConversationId } from "../conversation-id.ts";
import { useResource } from "../hooks/use-resource.ts";
import type { Decided } from "../policy-texts.ts";
import { PolicyNote } from "./policy-note.tsx";

/** Decisions about the calls of one turn that are read. */
const MAX_DECISIONS = 200;

export function DecisionNote({ operation: { id, turnId } }: { operation: OperationState }) {
  const conversationId = useContext(ConversationId);
  const load = useCallback(
    (signal: AbortSignal) =>
      client.conversations.journal(conversationId, {
        ...{ type: "policy.denied,policy.asked", turn: turnId, limit: MAX_DECISIONS, signal },
      }),
    [conversationId, turnId],
  );
  // The card also tells the outcome without it.
  const { value } = useResource(load);
  return value?.entries
    .filter(({ operationId }) => operationId === id)
    .map(({ seq, type, data }) => (
      <PolicyNote key={seq} decided={(data ?? {}) as Decided} isDenied={type === "policy.denied"} />
    ));
}

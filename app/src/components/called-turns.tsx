/** The turns of an agent that was called, live, in the card of its call. */
import { useConversation } from "../../../src/client/react/use-conversation.ts";
import { ResolveApproval } from "../approvals.ts";
import { ConversationId } from "../conversation-id.ts";
import { wordsOf } from "../format.ts";
import { TurnBlock } from "./turn-block.tsx";

export function CalledTurns({ id }: { id: string }) {
  const { state, status, resolveApproval } = useConversation(id);
  if (state.conversation === null)
    return (
      <p role="status" className="text-xs text-muted">
        {status === "closed" ? "Its conversation cannot be read." : "Loading…"}
      </p>
    );
  return (
    <ConversationId value={id}>
      <ResolveApproval value={resolveApproval}>
        <div className="space-y-4 border-l-2 border-line pl-3">
          {state.turns.map((turn) => (
            <TurnBlock
              key={turn.id}
              turn={turn}
              nameOf={wordsOf}
              isCompany={false}
              isThread={false}
              waitsFor={0}
              stopping={false}
              onStop={undefined}
              onRetry={undefined}
            />
          ))}
        </div>
      </ResolveApproval>
    </ConversationId>
  );
}

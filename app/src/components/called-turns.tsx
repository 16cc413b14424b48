/** The turns of a called agent, live, in the card of its call. */
import { useConversation } from "../../../src/client/react/use-conversation.ts";
import { Approvals } from "../approvals.ts";
import { ConversationId } from "../conversation-id.ts";
import { wordsOf } from "../format.ts";
import { socketToken } from "../session.ts";
import { TurnBlock } from "./turn-block.tsx";

export function CalledTurns({ id }: { id: string }) {
  const { state, status } = useConversation(id, { token: socketToken });
  if (state.conversation === null)
    return (
      <p role="status" className="text-xs text-muted">
        {status === "closed" ? "Its conversation cannot be read." : "Loading…"}
      </p>
    );
  return (
    <ConversationId value={id}>
      {/* Requests for approval are below the card, also while it is closed. */}
      <Approvals value={null}>
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
      </Approvals>
    </ConversationId>
  );
}

/** A conversation without messages. */
import { Suggestions } from "./suggestions.tsx";

interface EmptyConversationProps {
  agentId: string | undefined;
  agentName: string;
  /** Sends a suggestion; absent while the conversation is stopped. */
  onPick: ((text: string) => void) | undefined;
}

export function EmptyConversation({ agentId, agentName, onPick }: EmptyConversationProps) {
  return (
    <div className="my-auto space-y-6">
      <h2 className="text-xl font-semibold tracking-tight">Start a conversation with {agentName}</h2>
      {onPick !== undefined && <Suggestions agentId={agentId} onPick={onPick} />}
    </div>
  );
}

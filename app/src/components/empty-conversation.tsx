/** A conversation without messages. */
import { Suggestions } from "./suggestions.tsx";

interface EmptyConversationProps {
  agentName: string;
  /** Sends a suggestion; absent while the conversation is stopped. */
  onPick: ((text: string) => void) | undefined;
}

export function EmptyConversation({ agentName, onPick }: EmptyConversationProps) {
  return (
    <div className="my-auto space-y-6">
      <h2 className="text-xl font-semibold tracking-tight">Start a conversation with {agentName}</h2>
      {onPick !== undefined && <Suggestions onPick={onPick} />}
    </div>
  );
}

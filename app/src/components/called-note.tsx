/** States that another agent or a run opened the conversation, with a link to the agent's conversation. */
import type { ConversationView } from "../../../src/client/index.ts";
import { wordsOf } from "../format.ts";
import { conversationPath } from "../route.ts";
import { Link } from "./link.tsx";

/** Returns the name of the caller. */
export function callerName(calledBy: NonNullable<ConversationView["calledBy"]>): string {
  return "runId" in calledBy ? "A workflow" : wordsOf(calledBy.agentId);
}

export function CalledNote({ calledBy }: { calledBy: NonNullable<ConversationView["calledBy"]> }) {
  return (
    <p
      data-testid="called-note"
      className="mx-auto flex w-full max-w-3xl flex-wrap items-center gap-x-3 px-4 py-2 text-sm text-muted"
    >
      {callerName(calledBy)} asked for this and gets the answer.
      {"conversationId" in calledBy && (
        <Link
          to={conversationPath(calledBy.conversationId)}
          className="py-1 text-accent underline pointer-coarse:py-2.5"
        >
          Back to that conversation
        </Link>
      )}
    </p>
  );
}

/** Tells that a call of another agent, or of a run, opened the conversation, and leads back to the agent's. */
import type { ConversationView } from "../../../src/client/index.ts";
import { wordsOf } from "../format.ts";
import { conversationPath } from "../route.ts";
import { Link } from "./link.tsx";

/** Names who called. */
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

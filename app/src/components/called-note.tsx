/** Tells that another agent's call opened the conversation, and leads back to it. */
import type { ConversationView } from "../../../src/client/index.ts";
import { wordsOf } from "../format.ts";
import { conversationPath } from "../route.ts";
import { Link } from "./link.tsx";

export function CalledNote({ calledBy }: { calledBy: NonNullable<ConversationView["calledBy"]> }) {
  return (
    <p
      data-testid="called-note"
      className="mx-auto flex w-full max-w-3xl flex-wrap items-center gap-x-3 px-4 py-2 text-sm text-muted"
    >
      {wordsOf(calledBy.agentId)} asked for this and gets the answer.
      <Link
        to={conversationPath(calledBy.conversationId)}
        className="py-1 text-accent underline pointer-coarse:py-2.5"
      >
        Back to that conversation
      </Link>
    </p>
  );
}

/** A called agent: the usage of its call, its turns, and a link to its conversation. */
import { useCallback, useContext } from "react";
import type { OperationState } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { hasWork } from "../files/commits.ts";
import { amountsText, wordsOf } from "../format.ts";
import { useResource } from "../hooks/use-resource.ts";
import { NestedTurns } from "../nested-turns.ts";
import { conversationPath, filesPath } from "../route.ts";
import { useSession } from "../session.ts";
import { Link } from "./link.tsx";

export function CalledAgent({ agent }: { agent: NonNullable<OperationState["agent"]> }) {
  const turnsOf = useContext(NestedTurns);
  const { id, conversationId, spent } = agent;
  if (conversationId === undefined) return null;
  const name = wordsOf(id);
  return (
    <section aria-label={`Work of ${name}`} data-testid="called-agent" className="space-y-3">
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1 text-xs text-muted">
        {spent !== undefined && <span data-testid="call-spent">Used {amountsText(spent)}</span>}
        <Link
          to={conversationPath(conversationId)}
          className="py-1 text-accent underline pointer-coarse:py-2.5"
        >
          Open {name}’s conversation
        </Link>
        <FilesOf conversation={conversationId} name={name} />
      </p>
      {turnsOf(conversationId, id)}
    </section>
  );
}

/** Leads to the branch of a called agent, if the branch has changes. */
function FilesOf({ conversation, name }: { conversation: string; name: string }) {
  const { hasRepositories } = useSession();
  const load = useCallback(
    async (signal: AbortSignal) =>
      hasRepositories ? client.workspaces.get({ conversation }, { signal }) : undefined,
    [conversation, hasRepositories],
  );
  // Without an answer, the conversation of the agent still leads to its files.
  const { value } = useResource(load);
  if (!hasWork(value)) return null;
  return (
    <Link
      to={filesPath({ conversation }, "changes")}
      data-testid="delegate-files"
      className="py-1 text-accent underline pointer-coarse:py-2.5"
    >
      Open {name}’s files
    </Link>
  );
}

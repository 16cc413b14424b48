/** A called agent: the usage of its call, its turns, and a link to its conversation. */
import { useContext } from "react";
import type { OperationState } from "../../../src/client/index.ts";
import { amountsText, wordsOf } from "../format.ts";
import { NestedTurns } from "../nested-turns.ts";
import { conversationPath } from "../route.ts";
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
      </p>
      {turnsOf(conversationId, id)}
    </section>
  );
}

/** The visits of one node. */
import { useState } from "react";
import type { WorkflowNode } from "../../../src/client/index.ts";
import type { NodeVisits } from "../runs/run-log.ts";
import { countsText } from "../runs/run-texts.ts";
import { kindOf, ownerText } from "../runs/workflow-graph.ts";
import { LoadMore } from "./load-more.tsx";
import { RunTokenView } from "./run-token.tsx";

interface RunNodeDetailsProps {
  node: WorkflowNode;
  visits: NodeVisits;
  runInput: unknown;
}

/** Visits that are shown at once. */
const PAGE = 50;

export function RunNodeDetails({ node, visits, runInput }: RunNodeDetailsProps) {
  const [shown, setShown] = useState(PAGE);
  const { tokens } = visits;
  const kind = kindOf(node);
  return (
    <section aria-label={`Node ${node.name ?? node.ref}`} data-testid="node-details" className="space-y-2">
      <p className="text-xs text-muted wrap-anywhere">
        {kind === "pass" ? (
          ownerText(node)
        ) : (
          <>
            Runs the {kind} <span className="font-mono">{ownerText(node)}</span>
          </>
        )}
        . {countsText(visits)}.
      </p>
      {tokens.slice(0, shown).map((token) => (
        <RunTokenView
          key={token.id}
          token={token}
          hasOwner={kind !== "pass"}
          runInput={runInput}
          isOpen={tokens.length === 1}
        />
      ))}
      {tokens.length > shown && (
        <LoadMore
          onClick={() => setShown((count) => count + PAGE)}
          text={`Show ${Math.min(PAGE, tokens.length - shown)} more of ${tokens.length}`}
        />
      )}
    </section>
  );
}

/** The soundness check: every run of a workflow can continue, can end, and finds the values that it reads. Pure. */
import type { WorkflowDefinition } from "../../../protocol/workflow-definition.ts";
import type { InputIssue } from "../../../shared/errors.ts";
import { type Reads, readsOf } from "../../../shared/expressions/reads.ts";
import { firstIssues } from "../first-issues.ts";
import { MAX_PLACES, MAX_WAYS } from "../workflow-limits.ts";
import { fanInIssues, nestingIssues } from "./fan-ins.ts";
import { Places } from "./issue.ts";
import { findLive } from "./liveness.ts";
import { loopIssues } from "./loops.ts";
import { readIssues } from "./reads.ts";
import { type Lookup, schemaIssues } from "./schemas.ts";
import { wayIssues } from "./ways.ts";
import { branchIssues, findWrites } from "./writes.ts";

const TOO_MUCH = `SOUND-10: The workflow has more than ${MAX_PLACES} places, which are pairs of a node and the fan-outs around it, or ${MAX_WAYS} ways between them. Join branches earlier, or move parts into sub-workflows.`;

export function soundnessIssues(definition: WorkflowDefinition, lookup: Lookup): InputIssue[] {
  const live = findLive(definition);
  if (live.atlas.isCut) return [{ path: "", message: TOO_MUCH }];
  const at = new Places(definition);
  const nesting = nestingIssues(live, at);
  if (nesting.length > 0) return nesting;
  const graph = [
    ...wayIssues(definition, live, at),
    ...fanInIssues(definition, live, at),
    ...loopIssues(live, at),
    ...branchIssues(definition, live, at),
  ];
  // In a wrong graph, the places of reads and writes are unknown.
  if (graph.length > 0) return graph;
  const known = new Map<string, Reads>();
  const reads = (source: string) => {
    const found = known.get(source) ?? readsOf(source);
    known.set(source, found);
    return found;
  };
  return firstIssues([
    ...readIssues(definition, live, findWrites(definition, live), reads),
    ...firstIssues(schemaIssues(definition, live, lookup, reads)),
  ]);
}

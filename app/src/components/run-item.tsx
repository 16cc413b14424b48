/** One run in the list. */
import type { RunSummary } from "../../../src/client/index.ts";
import { exactJson, momentOf } from "../format.ts";
import { runPath } from "../route.ts";
import { lasted, runName, workflowName } from "../runs/run-texts.ts";
import { Link } from "./link.tsx";
import { RunStatusBadge } from "./run-status.tsx";

export function RunItem({ run }: { run: RunSummary }) {
  const { id, name, workflow, status, startedBy, createdAt, endedAt, errorCode, inputPreview = "{}" } = run;
  const took = lasted(createdAt, endedAt);
  return (
    <li>
      <Link
        to={runPath(id)}
        data-testid="run-item"
        data-run={id}
        className={`block rounded-xl border px-4 py-3 hover:border-accent ${
          status === "waiting" ? "border-caution bg-caution-tint" : "border-line bg-surface"
        }`}
      >
        <span className="flex items-center gap-3">
          <span className="min-w-0 flex-1 truncate text-sm font-medium">{runName(run)}</span>
          <RunStatusBadge status={status} />
        </span>
        {inputPreview !== "{}" && (
          <span data-testid="run-input" className="mt-0.5 block truncate font-mono text-xs">
            <span className="sr-only">Input </span>
            {exactJson(inputPreview)}
          </span>
        )}
        <span className="mt-1 flex flex-wrap gap-x-3 gap-y-0.5 text-xs text-muted">
          <time dateTime={createdAt}>{momentOf(createdAt, new Date())}</time>
          {name !== undefined && <span className="min-w-0 truncate">{workflowName(workflow)}</span>}
          {took !== undefined && <span>took {took}</span>}
          <span className="min-w-0 truncate">by {startedBy}</span>
          {errorCode !== undefined && status !== "cancelled" && (
            <span className="font-mono text-danger">{errorCode}</span>
          )}
        </span>
      </Link>
    </li>
  );
}

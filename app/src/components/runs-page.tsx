/** The runs of workflows: the list, its filter, and a form that starts one. */
import { useId, useState } from "react";
import type { RunStatus } from "../../../src/client/index.ts";
import { messageOf } from "../format.ts";
import { usePageTitle } from "../hooks/use-page-title.ts";
import { useRuns } from "../hooks/use-runs.ts";
import { STATUS_TEXT } from "../runs/run-texts.ts";
import { ErrorNote } from "./error-note.tsx";
import { LoadMore } from "./load-more.tsx";
import { Loading } from "./loading.tsx";
import { PageBody } from "./page-body.tsx";
import { PageHeader } from "./page-header.tsx";
import { RunItem } from "./run-item.tsx";
import { StartRun } from "./start-run.tsx";

export function RunsPage({ onMenu }: { onMenu: (() => void) | undefined }) {
  const [status, setStatus] = useState<RunStatus | undefined>(undefined);
  usePageTitle("Runs");
  return (
    <>
      <PageHeader title="Runs" onMenu={onMenu}>
        <StatusFilter value={status} onChange={setStatus} />
      </PageHeader>
      <PageBody>
        <StartRun />
        <RunList key={status} status={status} />
      </PageBody>
    </>
  );
}

interface StatusFilterProps {
  value: RunStatus | undefined;
  onChange: (status: RunStatus | undefined) => void;
}

function StatusFilter({ value, onChange }: StatusFilterProps) {
  const id = useId();
  return (
    <div className="flex items-center gap-2 text-sm">
      <label htmlFor={id} className="text-muted">
        Status
      </label>
      <select
        id={id}
        value={value ?? ""}
        onChange={(event) => {
          // SAFETY: the options are the statuses and the empty text.
          const chosen = event.target.value as RunStatus | "";
          onChange(chosen === "" ? undefined : chosen);
        }}
        className="rounded-lg border border-line bg-surface px-2 py-1.5 text-base sm:text-sm"
      >
        <option value="">All</option>
        {Object.entries(STATUS_TEXT).map(([status, text]) => (
          <option key={status} value={status}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

function RunList({ status }: { status: RunStatus | undefined }) {
  const { value: runs, error, more, loadMore, reload } = useRuns(status);
  return (
    <>
      {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
      {runs === undefined && error === undefined && <Loading label="Loading runs" />}
      {runs?.length === 0 && (
        <p className="px-1 py-2 text-sm text-muted">
          {status === undefined ? "No runs yet." : "No runs have this status."}
        </p>
      )}
      {runs !== undefined && runs.length > 0 && (
        <ul aria-label="Runs" className="space-y-2">
          {runs.map((run) => (
            <RunItem key={run.id} run={run} />
          ))}
        </ul>
      )}
      {more && <LoadMore onClick={loadMore} />}
    </>
  );
}

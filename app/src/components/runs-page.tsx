/** The runs of workflows: the list, its filters, which the address keeps, and a form that starts one. */
import { useEffect, useId, useState } from "react";
import type { RunStatus } from "../../../src/client/index.ts";
import { messageOf } from "../format.ts";
import { usePageTitle } from "../hooks/use-page-title.ts";
import { useRuns } from "../hooks/use-runs.ts";
import { navigate } from "../router.ts";
import { type RunChoice, runChoice, runsPath } from "../runs/run-filter.ts";
import { STATUS_TEXT } from "../runs/run-texts.ts";
import { ErrorNote } from "./error-note.tsx";
import { FIELD } from "./field.tsx";
import { LoadMore } from "./load-more.tsx";
import { Loading } from "./loading.tsx";
import { PageBody } from "./page-body.tsx";
import { PageHeader } from "./page-header.tsx";
import { RunItem } from "./run-item.tsx";
import { StartRun } from "./start-run.tsx";

interface RunsPageProps {
  /** The query string: the filters. */
  search: string;
  onMenu: (() => void) | undefined;
}

export function RunsPage({ search, onMenu }: RunsPageProps) {
  const { status, text } = runChoice(search);
  const choose = (choice: Partial<RunChoice>) => navigate(runsPath({ status, text, ...choice }));
  usePageTitle("Runs");
  return (
    <>
      <PageHeader title="Runs" onMenu={onMenu}>
        <StatusFilter value={status} onChange={(chosen) => choose({ status: chosen })} />
      </PageHeader>
      <PageBody>
        <StartRun />
        <RunSearch text={text} onSearch={(sought) => choose({ text: sought })} />
        <RunList key={JSON.stringify([status, text])} status={status} text={text} />
      </PageBody>
    </>
  );
}

interface RunSearchProps {
  text: string;
  onSearch: (text: string) => void;
}

function RunSearch({ text, onSearch }: RunSearchProps) {
  const [typed, setTyped] = useState(text);
  // The buttons Back and Forward change the text, too.
  useEffect(() => setTyped(text), [text]);
  return (
    <search>
      <form
        className="flex gap-2"
        onSubmit={(event) => {
          event.preventDefault();
          onSearch(typed.trim());
        }}
      >
        <input
          type="search"
          value={typed}
          aria-label="Search runs"
          placeholder="Name or workflow"
          maxLength={200}
          enterKeyHint="search"
          onChange={({ target }) => {
            setTyped(target.value);
            if (target.value === "" && text !== "") onSearch("");
          }}
          className={FIELD}
        />
        <button
          type="submit"
          className="shrink-0 rounded-lg border border-line px-4 py-2 text-sm font-medium"
        >
          Search
        </button>
      </form>
    </search>
  );
}

interface StatusFilterProps {
  value: RunStatus | "";
  onChange: (status: RunStatus | "") => void;
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
        value={value}
        // SAFETY: the options are the statuses and the empty text.
        onChange={(event) => onChange(event.target.value as RunStatus | "")}
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

function RunList({ status, text }: RunChoice) {
  const { value: runs, error, more, loadMore, reload } = useRuns({ status, text });
  return (
    <>
      {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
      {runs === undefined && error === undefined && <Loading label="Loading runs" />}
      {runs?.length === 0 && (
        <p className="px-1 py-2 text-sm text-muted">
          {more
            ? "No match in the newest runs. Load more to search older runs."
            : text !== ""
              ? "No runs match."
              : status === ""
                ? "No runs yet."
                : "No runs have this status."}
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

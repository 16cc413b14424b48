/** The libraries of the tenant and their definitions, for authors and operators. */
import { useCallback, useState } from "react";
import { queryOf } from "../../../src/client/requests.ts";
import { callApi } from "../api.ts";
import { count, messageOf } from "../format.ts";
import { usePageTitle } from "../hooks/use-page-title.ts";
import { type PageOptions, usePages } from "../hooks/use-pages.ts";
import { useResource } from "../hooks/use-resource.ts";
import { ErrorNote } from "./error-note.tsx";
import { JsonView } from "./json-view.tsx";
import { LoadMore } from "./load-more.tsx";
import { Loading } from "./loading.tsx";
import { PageBody } from "./page-body.tsx";
import { PageHeader } from "./page-header.tsx";

/** The kinds of definitions: the last part of the path, and the member of the answer. */
const KINDS = [
  ["personas", "Personas"],
  ["tools", "Tools"],
  ["model-profiles", "Model profiles"],
  ["tasks", "Tasks"],
  ["workflows", "Workflows"],
  ["prompts", "Prompts"],
  ["skills", "Skills"],
] as const;

interface LibraryItem {
  id: string;
  owner?: string | null;
}

interface Definition {
  id: string;
  version: number;
  definition?: unknown;
}

async function loadLibraries({ limit, cursor, signal }: PageOptions) {
  const { libraries, ...rest } = await callApi<{ libraries: LibraryItem[]; nextCursor?: string }>(
    `libraries${queryOf({ limit, cursor })}`,
    { signal },
  );
  return { items: libraries, ...rest };
}

export function LibrariesPage({ onMenu }: { onMenu: (() => void) | undefined }) {
  usePageTitle("Libraries");
  const { value: libraries, error, more, loadMore, reload } = usePages<LibraryItem>(loadLibraries);
  return (
    <>
      <PageHeader title="Libraries" subtitle="Personas, tools, skills, tasks and workflows" onMenu={onMenu} />
      <PageBody>
        {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
        {libraries === undefined && error === undefined && <Loading label="Loading libraries" />}
        {libraries?.length === 0 && <p className="px-1 py-2 text-sm text-muted">No libraries yet.</p>}
        {libraries?.map((library) => (
          <Library key={library.id} library={library} />
        ))}
        {more && <LoadMore onClick={loadMore} />}
      </PageBody>
    </>
  );
}

function Library({ library: { id, owner } }: { library: LibraryItem }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details
      data-testid="library"
      data-library={id}
      onToggle={({ target, currentTarget }) => {
        if (target === currentTarget) setOpen(currentTarget.open);
      }}
      className="rounded-xl border border-line bg-surface"
    >
      <summary className="rounded-xl px-4 py-3 text-sm">
        <span className="font-medium">{id}</span>{" "}
        <span className="text-muted">{typeof owner === "string" ? `by ${owner}` : "deployed"}</span>
      </summary>
      {isOpen && (
        <div className="space-y-4 border-t border-line px-4 py-3">
          {KINDS.map(([kind, title]) => (
            <Definitions key={kind} library={id} kind={kind} title={title} />
          ))}
        </div>
      )}
    </details>
  );
}

function Definitions({ library, kind, title }: { library: string; kind: string; title: string }) {
  const load = useCallback(
    async (signal: AbortSignal) => {
      const body = await callApi<Record<string, unknown>>(`libraries/${library}/${kind}?limit=100`, {
        signal,
      });
      // SAFETY: the only list of the answer has the definitions.
      return (Object.values(body).find((value) => Array.isArray(value)) ?? []) as Definition[];
    },
    [library, kind],
  );
  const { value, error, reload } = useResource(load);
  if (error !== undefined) return <ErrorNote text={messageOf(error)} onRetry={reload} />;
  if (value === undefined || value.length === 0) return null;
  return (
    <section aria-label={title} className="space-y-1">
      <h2 className="text-xs font-medium text-muted">
        {title} · {count(value.length, "definition", "definitions")}
      </h2>
      <ul className="space-y-1">
        {value.map((definition) => (
          <li key={definition.id}>
            <details className="text-sm">
              <summary className="py-0.5 font-mono text-[0.8125rem] pointer-coarse:py-2">
                {definition.id}@{definition.version}
              </summary>
              <JsonView label="Definition" value={definition.definition ?? definition} />
            </details>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The triggers of the tenant: when each starts, what it starts, and its last outcome. Authors enable and disable them. */
import cronstrue from "cronstrue";
import { useCallback, useState } from "react";
import { queryOf } from "../../../src/client/requests.ts";
import { hasRole } from "../../../src/shared/roles.ts";
import { callApi, withJson } from "../api.ts";
import { messageOf, momentOf } from "../format.ts";
import { usePageTitle } from "../hooks/use-page-title.ts";
import { type PageOptions, usePages } from "../hooks/use-pages.ts";
import { useResource } from "../hooks/use-resource.ts";
import { conversationPath, runPath } from "../route.ts";
import { useSession } from "../session.ts";
import { CodeBlock } from "./code-block.tsx";
import { ErrorNote } from "./error-note.tsx";
import { type Fact, Facts } from "./facts.tsx";
import { Link } from "./link.tsx";
import { LoadMore } from "./load-more.tsx";
import { Loading } from "./loading.tsx";
import { PageBody } from "./page-body.tsx";
import { PageHeader } from "./page-header.tsx";

/** A trigger, as far as the page shows it. */
interface Trigger {
  id: string;
  when: { at?: string; cron?: string; timeZone?: string; webhook?: unknown };
  starts: { workflow?: unknown; conversationId?: string };
  enabled: boolean;
  actsAs: string;
  nextAt?: string;
  lastFiredAt?: string;
  lastStarted?: { runId?: string };
  lastError?: { code: string; message: string; at: string };
}

async function load({ limit, cursor, signal }: PageOptions) {
  const { triggers, ...rest } = await callApi<{ triggers: Trigger[]; nextCursor?: string }>(
    `triggers${queryOf({ limit, cursor })}`,
    { signal },
  );
  return { items: triggers, ...rest };
}

export function TriggersPage({ onMenu }: { onMenu: (() => void) | undefined }) {
  usePageTitle("Triggers");
  const { value: triggers, error, more, loadMore, reload } = usePages<Trigger>(load);
  return (
    <>
      <PageHeader title="Triggers" subtitle="Runs and turns by time or webhook" onMenu={onMenu} />
      <PageBody>
        {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
        {triggers === undefined && error === undefined && <Loading label="Loading triggers" />}
        {triggers?.length === 0 && (
          <div className="space-y-2 px-1 py-2 text-sm text-muted">
            <p>
              No triggers yet. A trigger starts a run or a turn at a time, on a schedule, or when another
              service calls its address. Authors create a trigger with a request, such as:
            </p>
            <div className="markdown text-ink">
              <CodeBlock code={exampleAt(location.origin)} language="sh" />
            </div>
            <p>
              <a href="/docs#triggers" className="text-accent hover:underline pointer-coarse:py-2">
                All fields of a trigger
              </a>
            </p>
          </div>
        )}
        <ul aria-label="Triggers" className="space-y-2">
          {triggers?.map((trigger) => (
            <TriggerItem key={trigger.id} summary={trigger} onChanged={reload} />
          ))}
        </ul>
        {more && <LoadMore onClick={loadMore} />}
      </PageBody>
    </>
  );
}

function TriggerItem({ summary, onChanged }: { summary: Trigger; onChanged: () => void }) {
  const { id } = summary;
  const read = useCallback((signal: AbortSignal) => callApi<Trigger>(`triggers/${id}`, { signal }), [id]);
  const { value: trigger = summary, reload } = useResource(read);
  const { reader } = useSession();
  const [error, setError] = useState("");
  const { enabled, starts, actsAs, nextAt, lastFiredAt, lastStarted, lastError } = trigger;
  const change = async () => {
    setError("");
    try {
      await callApi(`triggers/${id}`, withJson("PATCH", { enabled: !enabled }));
      reload();
      onChanged();
    } catch (reason) {
      setError(messageOf(reason));
    }
  };
  const runId = lastStarted?.runId;
  const facts: Fact[] = [
    ["Cron", trigger.when.cron],
    ["Starts", startText(starts)],
    ["Acts as", actsAs],
    ["Next", nextAt === undefined ? undefined : momentOf(nextAt, new Date())],
    ["Last", lastFiredAt === undefined ? undefined : momentOf(lastFiredAt, new Date())],
    ["Error", lastError === undefined ? undefined : `${lastError.message} ${lastError.code}`],
  ];
  return (
    <li data-testid="trigger" className="space-y-2 rounded-xl border border-line bg-surface p-4">
      <div className="flex items-center gap-3">
        <p className="min-w-0 flex-1 text-sm font-medium wrap-anywhere">{whenText(trigger.when)}</p>
        <span className={`text-xs ${enabled ? "text-accent" : "text-muted"}`}>
          {enabled ? "Enabled" : "Disabled"}
        </span>
        {reader !== undefined && hasRole(reader, "author") && (
          <button
            type="button"
            onClick={() => void change()}
            className="rounded-lg border border-line px-3 py-1.5 text-sm hover:border-accent pointer-coarse:py-2.5"
          >
            {enabled ? "Disable" : "Enable"}
          </button>
        )}
      </div>
      <Facts facts={facts} />
      {runId !== undefined && (
        <Link to={runPath(runId)} className="block text-xs text-accent hover:underline pointer-coarse:py-2">
          Open the last run
        </Link>
      )}
      {error !== "" && <ErrorNote text={error} />}
    </li>
  );
}

/** Returns a command that makes a trigger. */
function exampleAt(server: string): string {
  return `curl ${server}/api/triggers \\
  -H 'content-type: application/json' \\
  -d '{"when": {"cron": "30 6 * * mon-fri", "timeZone": "Europe/Berlin"},
       "starts": {"workflow": "LIBRARY/WORKFLOW", "input": {}}}'`;
}

function whenText({ at, cron, timeZone }: Trigger["when"]): string {
  if (at !== undefined) return `Once, ${momentOf(at, new Date())}`;
  if (cron !== undefined) return `${inWords(cron)}${timeZone === undefined ? "" : ` (${timeZone})`}`;
  return "Webhook";
}

/** Returns a schedule in words, such as "At 06:30". A schedule with signs that the library does not know stays as it is. */
function inWords(cron: string): string {
  try {
    return cronstrue.toString(cron, { use24HourTimeFormat: true });
  } catch {
    return `Cron ${cron}`;
  }
}

function startText({ workflow, conversationId }: Trigger["starts"]) {
  if (conversationId !== undefined)
    return (
      <Link to={conversationPath(conversationId)} className="text-accent hover:underline">
        A message to a conversation
      </Link>
    );
  return typeof workflow === "string" ? workflow : referenceText(workflow);
}

function referenceText(workflow: unknown): string {
  const { library, id, version } = (workflow ?? {}) as { library?: string; id?: string; version?: number };
  return `${library}/${id}${version === undefined ? "" : `@${version}`}`;
}

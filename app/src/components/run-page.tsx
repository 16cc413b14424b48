/** One run: the graph of its workflow with the tokens, and the details of the chosen node. Small screens have a list of nodes. */
import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import type { RunView, WorkflowDefinition } from "../../../src/client/index.ts";
import { type UseRunResult, useRun } from "../../../src/client/react/index.ts";
import { client } from "../client.ts";
import { hasWork } from "../files/commits.ts";
import { messageOf } from "../format.ts";
import { useEscape } from "../hooks/use-escape.ts";
import { useLiveRun } from "../hooks/use-live-run.ts";
import { useMediaQuery } from "../hooks/use-media-query.ts";
import { usePageTitle } from "../hooks/use-page-title.ts";
import { useResource } from "../hooks/use-resource.ts";
import { filesPath, RUNS_PATH } from "../route.ts";
import type { RunLog } from "../runs/run-log.ts";
import { runName, STATUS_TEXT } from "../runs/run-texts.ts";
import { readingOrder } from "../runs/workflow-graph.ts";
import { useSession } from "../session.ts";
import { CancelRun } from "./cancel-run.tsx";
import { ErrorNote } from "./error-note.tsx";
import { Icon } from "./icon.tsx";
import { Link } from "./link.tsx";
import { Loading } from "./loading.tsx";
import { HeaderLink, PageHeader } from "./page-header.tsx";
import { RetryRun } from "./retry-run.tsx";
import { RunFacts, RunValues } from "./run-facts.tsx";
import { type GateDrafts, GatesBanner, RunGates, showQuestion } from "./run-gates.tsx";
import { RunNode } from "./run-node.tsx";
import { RunNodeDetails } from "./run-node-details.tsx";
import { RunStatusBadge } from "./run-status.tsx";
import { RunTimeline } from "./run-timeline.tsx";

/** The graph is a large part of the console, so a page loads it only if it shows it. */
const loadGraph = () => import("./run-graph.tsx");

/** The node that shows its details. */
const OPEN_NODE = "[data-testid=run-node][aria-expanded=true]";

interface RunPageProps {
  id: string;
  onMenu: (() => void) | undefined;
}

export function RunPage({ id, onMenu }: RunPageProps) {
  const { run, error, refresh } = useRun(id, { client });
  if (run !== undefined) return <LiveRunPage run={run} onMenu={onMenu} />;
  return (
    <>
      <PageHeader title="Run" subtitle={id} onMenu={onMenu} />
      <div className="space-y-3 p-4">
        {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={refresh} />}
        {error === undefined && <Loading label="Loading the run" />}
        <AllRuns />
      </div>
    </>
  );
}

interface LiveRunPageProps {
  run: RunView;
  onMenu: (() => void) | undefined;
}

function LiveRunPage({ run, onMenu }: LiveRunPageProps) {
  const { id } = run;
  const { workflow, log, events, error, status: connection, refresh, answer, cancel, retry } = useLiveRun(id);
  const status = log.end?.status ?? run.status;
  usePageTitle(`${runName(run)} · ${STATUS_TEXT[status]}`);
  const [cancelError, setCancelError] = useState<unknown>(undefined);
  const [retryError, setRetryError] = useState<unknown>(undefined);
  const isWide = useMediaQuery("(min-width: 64rem)");
  const isOver = status !== "running" && status !== "waiting";
  const drafts = useRef<GateDrafts>(new Map());
  const shown = {
    run,
    log,
    version: events.length,
    definition: workflow.value?.definition,
    drafts,
    answer,
  };
  return (
    <>
      <PageHeader title={runName(run)} subtitle={id} onMenu={onMenu}>
        <RunFiles id={id} seq={run.seq} />
        <RunStatusBadge status={status} />
        {!isOver && <CancelRun onCancel={() => cancel()} onError={setCancelError} />}
        {status === "failed" && run.retry !== undefined && (
          <RetryRun
            key={run.seq}
            retry={run.retry}
            onRetry={(options) => retry({ seq: run.seq, ...options })}
            onError={setRetryError}
          />
        )}
      </PageHeader>
      <div className="space-y-2 px-4 not-empty:py-4">
        {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={refresh} />}
        {run.issues?.map(({ deadLetter, message }) => (
          <ErrorNote key={deadLetter} text={message} />
        ))}
        {workflow.error !== undefined && (
          <ErrorNote text={messageOf(workflow.error)} onRetry={workflow.reload} />
        )}
        {cancelError !== undefined && !isOver && <ErrorNote text={messageOf(cancelError)} />}
        {retryError !== undefined && isOver && <ErrorNote text={messageOf(retryError)} />}
      </div>
      {connection === "reconnecting" && (
        <p role="status" data-testid="offline" className="px-4 py-1 text-xs text-caution">
          Offline. The page follows the run again when you reconnect.
        </p>
      )}
      <GatesBanner
        count={isOver ? 0 : run.gates.length}
        hasRule={run.gates.some(({ rule }) => rule !== undefined)}
        onAnswer={showQuestion}
      />
      {isWide ? <GraphAndDetails {...shown} /> : <NodeList {...shown} />}
    </>
  );
}

/** Leads to the files of a run if its branch has changes or commits. `seq` changes with the run. */
function RunFiles({ id, seq }: { id: string; seq: number }) {
  const { hasRepositories } = useSession();
  const [asked, setAsked] = useState(seq);
  const [ended, setEnded] = useState<number | undefined>(undefined);
  const load = useCallback(
    async (signal: AbortSignal) => {
      try {
        return hasRepositories ? await client.workspaces.get({ run: id }, { signal }) : undefined;
      } finally {
        setEnded(asked);
      }
    },
    [id, hasRepositories, asked],
  );
  const { value } = useResource(load);
  // A read ends before the next read begins. Otherwise a busy run aborts each read.
  useEffect(() => {
    if (ended === asked) setAsked(seq);
  }, [ended, asked, seq]);
  if (!hasWork(value)) return null;
  return (
    <HeaderLink to={filesPath({ run: id })} data-testid="open-files">
      <Icon name="folder" />
      <span className="max-sm:sr-only">Files</span>
    </HeaderLink>
  );
}

interface ShownRun {
  run: RunView;
  log: RunLog;
  /** Changes whenever the log has changed. */
  version: number;
  /** Absent until it is loaded. */
  definition: WorkflowDefinition | undefined;
  drafts: RefObject<GateDrafts>;
  answer: UseRunResult["answer"];
}

function GraphAndDetails(shown: ShownRun) {
  const { run, log, version, definition } = shown;
  const [chosen, setChosen] = useState<string | undefined>(undefined);
  const graph = useResource(loadGraph);
  const node = definition?.nodes.find(({ ref }) => ref === chosen);
  const aside = useRef<HTMLElement>(null);
  const close = useCallback(() => setChosen(undefined), []);
  useEscape(chosen === undefined ? undefined : close, OPEN_NODE);
  const choose = (ref: string) => {
    setChosen(ref);
    aside.current?.scrollTo({ top: 0 });
  };
  return (
    <div className="flex min-h-0 flex-1">
      <div className="flex min-w-0 flex-1 flex-col">
        <div className="min-h-0 flex-1">
          {graph.value === undefined && graph.error === undefined && (
            <p className="p-4 text-sm text-muted">Loading the graph…</p>
          )}
          {graph.error !== undefined && (
            <div className="p-4">
              <ErrorNote text="The graph could not be loaded." onRetry={graph.reload} />
            </div>
          )}
          {definition !== undefined && graph.value !== undefined && (
            <graph.value.default
              definition={definition}
              log={log}
              version={version}
              chosen={chosen}
              onChoose={choose}
            />
          )}
        </div>
        {definition !== undefined && (
          <div className="relative max-h-2/5 shrink-0 overflow-y-auto border-t border-line p-4 empty:hidden">
            <RunTimeline run={run} log={log} definition={definition} chosen={chosen} onChoose={choose} />
          </div>
        )}
      </div>
      <aside
        ref={aside}
        aria-label="Details"
        className="relative w-96 shrink-0 space-y-3 overflow-y-auto border-l border-line p-4"
      >
        {node !== undefined && (
          <>
            <div className="flex items-center gap-2">
              <h2 className="min-w-0 flex-1 truncate text-sm font-semibold">{node.name ?? node.ref}</h2>
              <button
                type="button"
                onClick={close}
                aria-label="Close the node"
                className="rounded-lg p-1.5 text-muted hover:text-ink"
              >
                <Icon name="cross" />
              </button>
            </div>
            <RunNodeDetails key={node.ref} node={node} visits={log.visits(node.ref)} runInput={run.input} />
          </>
        )}
        <Questions {...shown} />
        {node === undefined && (
          <>
            <RunFacts run={run} end={log.end} answers={log.answers} />
            <RunValues run={run} />
          </>
        )}
        <AllRuns />
      </aside>
    </div>
  );
}

function NodeList(shown: ShownRun) {
  const { run, log, definition } = shown;
  const [chosen, setChosen] = useState<string | undefined>(undefined);
  const close = useCallback(() => setChosen(undefined), []);
  useEscape(chosen === undefined ? undefined : close, OPEN_NODE);
  // The focus moves the page to the node in the list.
  const show = (ref: string) => {
    setChosen(ref);
    document.querySelector<HTMLElement>(`[data-testid=run-node][data-node="${CSS.escape(ref)}"]`)?.focus();
  };
  return (
    <div className="relative min-h-0 flex-1 overflow-y-auto">
      <div className="mx-auto max-w-3xl space-y-4 px-4 py-4">
        <Questions {...shown} />
        <RunFacts run={run} end={log.end} answers={log.answers} />
        {definition !== undefined && (
          <RunTimeline run={run} log={log} definition={definition} chosen={chosen} onChoose={show} />
        )}
        {definition !== undefined && (
          <ol aria-label="Nodes" className="space-y-2">
            {readingOrder(definition).map((node) => (
              <li key={node.ref} className="space-y-2">
                <RunNode
                  node={node}
                  visits={log.visits(node.ref)}
                  chosen={chosen === node.ref}
                  onChoose={() => setChosen((now) => (now === node.ref ? undefined : node.ref))}
                />
                {chosen === node.ref && (
                  <div className="pl-3">
                    <RunNodeDetails node={node} visits={log.visits(node.ref)} runInput={run.input} />
                  </div>
                )}
              </li>
            ))}
          </ol>
        )}
        <RunValues run={run} />
        <AllRuns />
      </div>
    </div>
  );
}

function Questions({ run, log, definition, drafts, answer }: ShownRun) {
  return <RunGates run={run} log={log} definition={definition} drafts={drafts} answer={answer} />;
}

function AllRuns() {
  return (
    <Link to={RUNS_PATH} className="inline-block py-1 text-sm text-accent hover:underline">
      All runs
    </Link>
  );
}

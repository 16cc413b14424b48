/** The requests that wait for the reader: calls of tools, and questions of runs. Each can be answered here. */
import { useCallback, useRef, useState } from "react";
import type { WaitingApproval } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { messageOf, momentOf, wordsOf } from "../format.ts";
import type { Inbox } from "../hooks/use-inbox.ts";
import { usePageTitle } from "../hooks/use-page-title.ts";
import { conversationPath, runPath } from "../route.ts";
import type { GateTexts } from "../runs/gate-form.ts";
import { workflowName } from "../runs/run-texts.ts";
import { ApprovalCard } from "./approval-card.tsx";
import { ErrorNote } from "./error-note.tsx";
import { GateCard } from "./gate-card.tsx";
import { Link } from "./link.tsx";
import { LoadMore } from "./load-more.tsx";
import { Loading } from "./loading.tsx";
import { PageBody } from "./page-body.tsx";
import { PageHeader } from "./page-header.tsx";

type Waiting<Kind extends WaitingApproval["kind"]> = Extract<WaitingApproval, { kind: Kind }>;

interface InboxPageProps {
  inbox: Inbox;
  onMenu: (() => void) | undefined;
}

export function InboxPage({ inbox, onMenu }: InboxPageProps) {
  usePageTitle("Inbox");
  const { value: requests, error, more, loadMore, reload, close } = inbox;
  const [note, setNote] = useState("");
  const [texts, setTexts] = useState<Record<string, GateTexts>>({});
  const list = useRef<HTMLUListElement>(null);
  const takeFocus = useCallback(() => list.current?.focus(), []);
  const done = (operationId: string, text: string) => {
    close(operationId);
    setNote(text);
  };
  return (
    <>
      <PageHeader title="Inbox" subtitle="Requests that wait for your answer" onMenu={onMenu} />
      <PageBody>
        {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
        {requests === undefined && error === undefined && <Loading label="Loading your inbox" />}
        {requests?.length === 0 && (
          <p className="px-1 py-2 text-sm text-muted">
            Nothing waits for you. Calls of tools and questions of runs that need your answer appear here.
          </p>
        )}
        <ul ref={list} tabIndex={-1} aria-label="Requests" className="space-y-4">
          {requests?.map((request) => (
            <li key={request.operationId} className="space-y-1.5" data-testid="inbox-item">
              <Origin request={request} />
              {request.kind === "tool" ? (
                <Call
                  request={request}
                  onDone={(text) => done(request.operationId, text)}
                  onLeave={takeFocus}
                />
              ) : (
                <Gate
                  request={request}
                  texts={texts[request.operationId] ?? {}}
                  onType={(typed) => setTexts((all) => ({ ...all, [request.operationId]: typed }))}
                  onDone={(text) => done(request.operationId, text)}
                  onLeave={takeFocus}
                />
              )}
            </li>
          ))}
        </ul>
        {more && <LoadMore onClick={loadMore} />}
        <p role="status" data-testid="inbox-note" className="px-1 text-sm text-muted wrap-anywhere">
          {note}
        </p>
      </PageBody>
    </>
  );
}

/** Links to the conversation or the run that asks. */
function Origin({ request }: { request: WaitingApproval }) {
  const { requester, requestedAt } = request;
  const [to, text] =
    request.kind === "tool"
      ? [conversationPath(request.conversationId, request.turnId), wordsOf(request.agentId)]
      : [runPath(request.runId), workflowName(request.workflow)];
  return (
    <p className="flex flex-wrap gap-x-2 px-1 text-xs text-muted">
      <Link to={to} className="text-accent hover:underline pointer-coarse:py-2">
        {text}
      </Link>
      {requester !== undefined && <span>for {requester}</span>}
      <time dateTime={requestedAt}>{momentOf(requestedAt, new Date())}</time>
    </p>
  );
}

interface AnswerProps {
  onDone: (text: string) => void;
  onLeave: () => void;
}

function Call({ request, onDone, onLeave }: AnswerProps & { request: Waiting<"tool"> }) {
  const { operationId, conversationId, turnId, name, target, input, ...approval } = request;
  return (
    <ApprovalCard
      operation={{
        ...{ id: operationId, turnId, name, input, state: "awaiting_approval", approval },
        ...(target === undefined ? {} : { target }),
      }}
      actions={{
        connected: true,
        resolve: async (id, answer) => {
          const resolved = await client.operations.resolveApproval(conversationId, id, answer);
          onDone(answer.approved ? "Approved." : "Denied.");
          return resolved;
        },
      }}
      onLate={onDone}
      onLeave={onLeave}
    />
  );
}

interface GateProps extends AnswerProps {
  request: Waiting<"gate">;
  texts: GateTexts;
  onType: (texts: GateTexts) => void;
}

function Gate({ request, ...rest }: GateProps) {
  const { question, node, runId, operationId, input, ...gate } = request;
  const place = node ?? "The run";
  // The list leaves out an input that is too large, and nobody should answer without it.
  if (input === undefined)
    return (
      <p className="rounded-xl border border-caution bg-surface p-3 text-sm">
        {gate.prompt} Its input is too large for the list.{" "}
        <Link to={runPath(runId)} className="text-accent underline">
          Open the run to answer
        </Link>
      </p>
    );
  return (
    <GateCard
      {...rest}
      gate={{ ...gate, operationId, input, kind: question }}
      place={place}
      answer={(answer) => client.runs.answer(runId, operationId, answer)}
    />
  );
}

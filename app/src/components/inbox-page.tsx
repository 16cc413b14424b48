/** The requests that wait for the reader: calls of tools, and questions of runs. One of them is open, and takes its answer here. */
import { useCallback, useRef, useState } from "react";
import type { AgentSummary, WaitingApproval } from "../../../src/client/index.ts";
import type { UseApprovalsResult } from "../../../src/client/react/index.ts";
import type { Json } from "../../../src/shared/json.ts";
import { ConversationId } from "../conversation-id.ts";
import { messageOf, momentOf } from "../format.ts";
import { usePageTitle } from "../hooks/use-page-title.ts";
import { nameAmong } from "../names.ts";
import { conversationPath, runPath } from "../route.ts";
import type { GateTexts } from "../runs/gate-form.ts";
import { stepText } from "../runs/run-texts.ts";
import { ApprovalCard } from "./approval-card.tsx";
import { ErrorNote } from "./error-note.tsx";
import { GateCard } from "./gate-card.tsx";
import { InboxRow, rowTitle } from "./inbox-row.tsx";
import { Link } from "./link.tsx";
import { LoadMore } from "./load-more.tsx";
import { Loading } from "./loading.tsx";
import { PageBody } from "./page-body.tsx";
import { PageHeader } from "./page-header.tsx";

type Waiting<Kind extends WaitingApproval["kind"]> = Extract<WaitingApproval, { kind: Kind }>;

interface InboxPageProps {
  inbox: UseApprovalsResult;
  agents: readonly AgentSummary[];
  onMenu: (() => void) | undefined;
}

export function InboxPage({ inbox, agents, onMenu }: InboxPageProps) {
  usePageTitle("Inbox");
  const { approvals, loading, error, more, loadMore, refresh, answer } = inbox;
  const [note, setNote] = useState("");
  const [texts, setTexts] = useState<Record<string, GateTexts>>({});
  const list = useRef<HTMLUListElement>(null);
  // The first request is open. After its answer the next request opens. A new request opens nothing.
  const [openId, setOpenId] = useState<string | null>(null);
  const first = approvals[0]?.operationId ?? null;
  const isGone = openId !== "" && !approvals.some(({ operationId }) => operationId === openId);
  if (isGone && openId !== first) setOpenId(first);
  const takeFocus = useCallback(() => list.current?.focus(), []);
  return (
    <>
      <PageHeader title="Inbox" subtitle="Requests that wait for your answer" onMenu={onMenu} />
      <PageBody>
        {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={refresh} />}
        {loading && <Loading label="Loading your inbox" />}
        {approvals.length === 0 && !loading && error === undefined && (
          <p className="px-1 py-2 text-sm text-muted">
            Nothing waits for you. Calls of tools and questions of runs that need your answer appear here.
          </p>
        )}
        <ul ref={list} tabIndex={-1} aria-label="Requests" className="space-y-2">
          {approvals.map((request) => (
            <InboxRow
              key={request.operationId}
              request={request}
              nameOf={(id) => nameAmong(agents, id)}
              isOpen={openId === request.operationId}
              onToggle={() => setOpenId((now) => (now === request.operationId ? "" : request.operationId))}
            >
              <Origin request={request} />
              {request.kind === "tool" ? (
                <Call
                  request={request}
                  answer={(given) => answer(request, given)}
                  onDone={setNote}
                  onLeave={takeFocus}
                />
              ) : (
                <Gate
                  request={request}
                  texts={texts[request.operationId] ?? {}}
                  onType={(typed) => setTexts((all) => ({ ...all, [request.operationId]: typed }))}
                  answer={(given) => answer(request, given)}
                  onDone={setNote}
                  onLeave={takeFocus}
                />
              )}
            </InboxRow>
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
      ? [conversationPath(request.conversationId, request.turnId), "Open the conversation"]
      : [runPath(request.runId), "Open the run"];
  return (
    <p className="flex flex-wrap items-baseline gap-x-2 text-xs text-muted">
      <Link to={to} className="text-accent hover:underline pointer-coarse:py-2">
        {text}
      </Link>
      {requester !== undefined && <span>for {requester}</span>}
      <time dateTime={requestedAt}>since {momentOf(requestedAt, new Date())}</time>
    </p>
  );
}

interface AnswerProps {
  answer: (answer: Json) => Promise<void>;
  onDone: (text: string) => void;
  onLeave: () => void;
}

function Call({ request, answer, onDone, onLeave }: AnswerProps & { request: Waiting<"tool"> }) {
  const { operationId, turnId, name, target, input, ...approval } = request;
  return (
    <ConversationId value={request.conversationId}>
      <ApprovalCard
        operation={{
          ...{ id: operationId, turnId, name, input, state: "awaiting_approval", approval },
          ...(target === undefined ? {} : { target }),
        }}
        actions={{
          connected: true,
          resolve: async (_, given) => {
            await answer(given);
            onDone(given.approved ? "Approved." : "Denied.");
          },
        }}
        onLate={onDone}
        onLeave={onLeave}
      />
    </ConversationId>
  );
}

interface GateProps extends AnswerProps {
  request: Waiting<"gate">;
  texts: GateTexts;
  onType: (texts: GateTexts) => void;
}

function Gate({ request, ...rest }: GateProps) {
  const { question, node, runId, operationId, input, ...gate } = request;
  // The list leaves out an input that is too large, and an answer needs the input.
  if (input === undefined)
    return (
      <p className="rounded-xl border border-caution bg-surface p-3 text-sm">
        The input is too large for the list.{" "}
        <Link to={runPath(runId)} className="text-accent underline">
          Open the run to answer
        </Link>
      </p>
    );
  return (
    <GateCard
      {...rest}
      gate={{ ...gate, operationId, input, kind: question }}
      place={stepText(node)}
      isTitled={rowTitle(request) === gate.prompt}
    />
  );
}

/**
 * The inspector of a turn: its facts, the reason of a failure, and views with links of their own.
 *
 * INSPECT-1  Each view has its own address.
 * INSPECT-2  Requests and prompts are for operators and administrators. Other readers of the conversation see a message in their
 *            place, and the page does not ask the server for them.
 * INSPECT-3  A failed turn shows its error above each view, and its newest incidents above the waterfall.
 */
import { useCallback, useEffect } from "react";
import {
  type AgentSummary,
  DramatisClientError,
  type TurnView,
  textOf,
} from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { ConversationId } from "../../conversation-id.ts";
import { messageOf, titleFrom } from "../../format.ts";
import { usePageTitle } from "../../hooks/use-page-title.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { nameAmong } from "../../names.ts";
import { conversationPath, type TurnView as ViewName } from "../../route.ts";
import { ErrorNote } from "../error-note.tsx";
import { Loading } from "../loading.tsx";
import { MissingPage } from "../missing-page.tsx";
import { PageBody } from "../page-body.tsx";
import { HeaderLink, PageHeader } from "../page-header.tsx";
import { FailureCard } from "./failure-card.tsx";
import { IncidentsView } from "./incidents-view.tsx";
import { JournalView } from "./journal-view.tsx";
import { ProjectionsView } from "./projections-view.tsx";
import { PromptView } from "./prompt-view.tsx";
import { ReplayView } from "./replay-view.tsx";
import { RequestView } from "./request-view.tsx";
import { TurnFacts } from "./turn-facts.tsx";
import { TurnTabs } from "./turn-tabs.tsx";
import { WaterfallView } from "./waterfall-view.tsx";

/** Milliseconds between two reads of an active turn. */
const REFRESH_MS = 2_000;

interface TurnPageProps {
  id: string;
  turnId: string;
  view: ViewName;
  /** The number of the chosen model call; the newest when absent. */
  call: number | undefined;
  agents: readonly AgentSummary[];
  onMenu: (() => void) | undefined;
}

export function TurnPage({ id, turnId, view, call, agents, onMenu }: TurnPageProps) {
  const load = useCallback((signal: AbortSignal) => client.turns.get(id, turnId, { signal }), [id, turnId]);
  const { value: turn, error, reload } = useResource(load);
  const question = turn === undefined ? "" : titleFrom(textOf(turn.input));
  usePageTitle(question === "" ? "Turn" : `Turn: ${question}`);
  const isActive = turn?.status === "active";
  useEffect(() => {
    if (!isActive) return;
    const timer = setInterval(reload, REFRESH_MS);
    return () => clearInterval(timer);
  }, [isActive, reload]);

  if (error instanceof DramatisClientError && [401, 403, 404].includes(error.status))
    return <MissingPage title="Turn not found" detail={error.detail} onMenu={onMenu} />;
  const nameOf = (agentId: string) => nameAmong(agents, agentId);
  return (
    <ConversationId value={id}>
      <PageHeader title="Turn" subtitle={turn && `${nameOf(turn.agentId)} · ${turn.id}`} onMenu={onMenu}>
        <HeaderLink to={conversationPath(id, turnId)} data-testid="open-conversation">
          Conversation
        </HeaderLink>
      </PageHeader>
      <PageBody isWide>
        {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
        {turn === undefined && error === undefined && <Loading label="Loading the turn" />}
        {turn !== undefined && (
          <>
            <TurnFacts turn={turn} nameOf={nameOf} />
            {turn.error !== undefined && (
              <FailureCard turn={turn} error={turn.error} hasIncidents={view === "waterfall"} />
            )}
            <TurnTabs conversationId={id} turnId={turnId} view={view} call={call} />
            <View turn={turn} view={view} call={call} nameOf={nameOf} />
          </>
        )}
      </PageBody>
    </ConversationId>
  );
}

interface ViewProps {
  turn: TurnView;
  view: ViewName;
  call: number | undefined;
  /** Returns the name of an agent. */
  nameOf: (agentId: string) => string;
}

function View({ turn, view, call, nameOf }: ViewProps) {
  switch (view) {
    case "waterfall":
      return <WaterfallView turn={turn} nameOf={nameOf} />;
    case "request":
      return <RequestView turn={turn} call={call} />;
    case "prompt":
      return <PromptView turn={turn} call={call} />;
    case "journal":
      return <JournalView turn={turn} />;
    case "incidents":
      return <IncidentsView turn={turn} />;
    case "projections":
      return <ProjectionsView conversationId={turn.conversationId} />;
    case "replay":
      return <ReplayView turn={turn} />;
    default:
      return view satisfies never;
  }
}

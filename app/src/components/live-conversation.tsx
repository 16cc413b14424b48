/** A live conversation: header, timeline and composer. */
import { type ComponentProps, useCallback, useEffect, useRef, useState } from "react";
import {
  type AgentSummary,
  agentsAtWork,
  type ConnectionStatus,
  type ConversationSummary,
  isTurnAnswering,
  type TurnState,
} from "../../../src/client/index.ts";
import { useConversation } from "../../../src/client/react/use-conversation.ts";
import { contentOf, type Draft } from "../content.ts";
import { isFileTool } from "../files/tool-views.ts";
import { takeFirstMessage } from "../first-message.ts";
import { budgetText, messageOf } from "../format.ts";
import { useTitle } from "../hooks/use-title.ts";
import { nameAmong } from "../names.ts";
import { newMessageId } from "../own-message.ts";
import { conversationPath, filesPath } from "../route.ts";
import { checkSession, socketToken, useSession } from "../session.ts";
import { AddresseeNote } from "./addressee-note.tsx";
import { AgentsMenu } from "./agents-menu.tsx";
import { CalledNote, callerName } from "./called-note.tsx";
import { ChannelBadge } from "./channel-badge.tsx";
import { Composer } from "./composer.tsx";
import { ConnectionIndicator } from "./connection-indicator.tsx";
import { agentsOf, ConversationLinks, DeleteConversation } from "./conversation-actions.tsx";
import { ConversationMenu } from "./conversation-menu.tsx";
import { EndButton, EndedNote } from "./end-button.tsx";
import { ErrorNote } from "./error-note.tsx";
import { ExportLink } from "./export-link.tsx";
import { Icon } from "./icon.tsx";
import { Link } from "./link.tsx";
import { ListingActions } from "./listing-actions.tsx";
import { HeaderLink, PageHeader } from "./page-header.tsx";
import { StoppedBar } from "./stopped-bar.tsx";
import { Timeline } from "./timeline.tsx";
import { TurnOrderField } from "./turn-order.tsx";

interface LiveConversationProps {
  id: string;
  agents: readonly AgentSummary[];
  /** The turn to begin at. */
  turnId: string | undefined;
  /** As in `ListingActions`. */
  listed: ConversationSummary | null | undefined;
  /** Called when the title or the place in the lists has changed. */
  onListChanged: () => void;
  onDeleted: () => void;
  onMenu: (() => void) | undefined;
}

export function LiveConversation({
  id,
  agents,
  turnId,
  listed,
  onListChanged,
  onDeleted,
  onMenu,
}: LiveConversationProps) {
  const conversation = useConversation(id, { token: socketToken });
  const { state, status, stopping, stopped, ended, send, stop, resume, update, complete, reconnect } =
    conversation;
  const view = state.conversation;
  useSignedConnection(status, reconnect);
  const nameOf = useCallback((agentId: string) => nameAmong(agents, agentId), [agents]);
  const name = nameOf(view?.agentId ?? "");
  const found = useTitle(id, view?.title, state.messages.length === 0);
  const title = view === null ? "Conversation" : found;

  useEffect(() => {
    const first = takeFirstMessage(id);
    if (first !== undefined) send(first, { id: newMessageId() });
  }, [id, send]);

  useRenamed(view?.title, onListChanged);

  useEffect(() => {
    document.title = `${title} · Dramatis`;
    return () => {
      document.title = "Dramatis";
    };
  }, [title]);

  const [error, setError] = useState<unknown>(undefined);
  const sendDraft = useCallback(
    async (draft: Draft) => {
      setError(undefined);
      try {
        send(await contentOf(id, draft), { id: newMessageId() });
        return true;
      } catch (reason) {
        setError(reason);
        return false;
      }
    },
    [id, send],
  );

  const atWork = agentsAtWork(state);
  const count = state.turns.filter(isTurnAnswering).length;
  const isCalled = view?.calledBy !== undefined;
  const offline = status !== "open" && view !== null;

  const origin = view?.forkedFrom?.conversationId;
  const channel = view?.channel;
  const subtitle =
    channel !== undefined ? (
      <>
        <ChannelBadge channel={channel} /> {name}
      </>
    ) : origin === undefined ? (
      name
    ) : (
      <>
        {name} · Fork of{" "}
        <Link to={conversationPath(origin)} data-testid="original" className="text-accent hover:underline">
          another conversation
        </Link>
      </>
    );

  return (
    <>
      <PageHeader title={title} subtitle={subtitle} onMenu={onMenu}>
        <ConnectionIndicator status={status} onReconnect={reconnect} />
        {atWork.length > 1 && (
          <AgentsMenu participants={view?.participants ?? []} agents={atWork} nameOf={nameOf} />
        )}
        {state.turns.some(worksOnFiles) && <FilesLink id={id} />}
        {view !== null && (
          <ConversationMenu>
            {!isCalled && (
              <ListingActions
                id={id}
                listed={listed}
                title={title}
                onRename={ended ? undefined : (next) => update({ title: next })}
                onChanged={onListChanged}
              />
            )}
            {!ended && !isCalled && (
              <TurnOrderField value={view.turns} onChange={(turns) => update({ turns })} />
            )}
            <ConversationLinks id={id} agentIds={agentsOf(view)} nameOf={nameOf} />
            <div className="space-y-3 px-3 py-3">
              <ExportLink of="conversations" id={id} />
              {!ended && !isCalled && <EndButton onEnd={() => complete()} />}
              {!isCalled && <DeleteConversation id={id} onDeleted={onDeleted} />}
            </div>
          </ConversationMenu>
        )}
      </PageHeader>
      <Timeline id={id} turnId={turnId} conversation={conversation} nameOf={nameOf} />
      {state.error?.code === "MEMORY_EXTRACTION_FAILING" && <Problem text={state.error.message} />}
      {error !== undefined && <Problem text={messageOf(error)} onClose={() => setError(undefined)} />}
      <StoppedBar
        stopped={stopped && !ended}
        resuming={state.stops?.some(({ type }) => type === "conversation.resume") ?? false}
        onResume={() => resume()}
      />
      {ended && view?.calledBy === undefined && <EndedNote />}
      {view?.calledBy !== undefined && <CalledNote calledBy={view.calledBy} />}
      <Composer
        place={id}
        onSend={sendDraft}
        answering={count === 0 ? undefined : { count, stopping, onStop: () => stop() }}
        disabled={stopped || ended || isCalled}
        {...(view?.calledBy !== undefined
          ? { placeholder: `Read only: ${callerName(view.calledBy)} talks with ${name} here` }
          : ended
            ? { placeholder: "This conversation has ended" }
            : stopped
              ? { placeholder: "Resume to write a message" }
              : {})}
        budget={budgetText(conversation.budgetLeft)}
        addressee={(text) => <AddresseeNote state={state} text={text} nameOf={nameOf} />}
        note={offline ? offlineNote(status, stopping) : stopping ? "Stopping…" : undefined}
      />
    </>
  );
}

/** Leads to the files of a conversation if an agent works on files there. */
function FilesLink({ id }: { id: string }) {
  return (
    <HeaderLink to={filesPath({ conversation: id })} data-testid="open-files">
      <Icon name="folder" />
      Files
    </HeaderLink>
  );
}

function worksOnFiles({ items }: TurnState): boolean {
  return items.some((item) => item.type === "tool" && isFileTool(item.operation.name));
}

/** An error above the composer. A long text scrolls, so the composer stays on the screen. */
function Problem(props: ComponentProps<typeof ErrorNote>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a long text scrolls by keyboard, too.
    <div tabIndex={0} className="mx-auto max-h-[25dvh] w-full max-w-3xl shrink-0 overflow-y-auto px-4">
      <ErrorNote {...props} />
    </div>
  );
}

/** Messages and stops wait for the connection. After a final close the reader has to reconnect. */
function offlineNote(status: ConnectionStatus, stopping: boolean): string {
  if (stopping) return "Offline. The answer stops when you reconnect.";
  return status === "closed" || status === "unauthorized"
    ? "Offline. Reconnect to send messages."
    : "Offline. Messages send when you reconnect.";
}

/** Asks the reader to sign in after a refusal, and connects again after that. */
function useSignedConnection(status: ConnectionStatus, reconnect: () => void): void {
  const { entry } = useSession();
  const refused = useRef(false);
  useEffect(() => {
    refused.current = status === "unauthorized";
    if (refused.current) void checkSession();
  }, [status]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each sign-in connects again.
  useEffect(() => {
    if (refused.current) reconnect();
  }, [entry, reconnect]);
}

/** Calls back when the title changes, but not when it loads. */
function useRenamed(title: string | null | undefined, onRenamed: () => void): void {
  const known = useRef(title);
  useEffect(() => {
    if (known.current !== undefined && known.current !== title) onRenamed();
    known.current = title;
  }, [title, onRenamed]);
}

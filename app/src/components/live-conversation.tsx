/** A live conversation: header, timeline and composer. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { AgentIdentity, ConnectionStatus } from "../../../src/client/index.ts";
import { useConversation } from "../../../src/client/react/use-conversation.ts";
import { contentOf, type Draft } from "../content.ts";
import { takeFirstMessage } from "../first-message.ts";
import { agentName, messageOf, wordsOf } from "../format.ts";
import { Composer } from "./composer.tsx";
import { ConnectionIndicator } from "./connection-indicator.tsx";
import { ErrorNote } from "./error-note.tsx";
import { PageHeader } from "./page-header.tsx";
import { Timeline } from "./timeline.tsx";

interface LiveConversationProps {
  id: string;
  agents: AgentIdentity[] | undefined;
  onRenamed: () => void;
  onMenu: (() => void) | undefined;
}

export function LiveConversation({ id, agents, onRenamed, onMenu }: LiveConversationProps) {
  const conversation = useConversation(id);
  const { state, status, send, reconnect } = conversation;
  const view = state.conversation;
  const agent = agents?.find((candidate) => candidate.id === view?.agentId);
  const name = agent === undefined ? wordsOf(view?.agentId ?? "") : agentName(agent);
  const title = view?.title ?? (view === null ? "" : "Untitled conversation");

  useEffect(() => {
    const first = takeFirstMessage(id);
    if (first !== undefined) send(first);
  }, [id, send]);

  useRenamed(view?.title, onRenamed);

  useEffect(() => {
    document.title = title === "" ? "Dramatis" : `${title} · Dramatis`;
    return () => {
      document.title = "Dramatis";
    };
  }, [title]);

  const [error, setError] = useState<unknown>(undefined);
  const sendDraft = useCallback(
    async (draft: Draft) => {
      setError(undefined);
      try {
        send(await contentOf(id, draft));
        return true;
      } catch (reason) {
        setError(reason);
        return false;
      }
    },
    [id, send],
  );

  return (
    <>
      <PageHeader title={title} subtitle={name} onMenu={onMenu}>
        <ConnectionIndicator status={status} onReconnect={reconnect} />
      </PageHeader>
      <Timeline id={id} conversation={conversation} agentName={name} />
      {error !== undefined && (
        <div className="mx-auto w-full max-w-3xl px-4">
          <ErrorNote text={messageOf(error)} />
        </div>
      )}
      <Composer
        onSend={sendDraft}
        note={status === "open" || view === null ? undefined : offlineNote(status)}
      />
    </>
  );
}

/** Messages wait for the connection. After a final close the reader has to reconnect. */
function offlineNote(status: ConnectionStatus): string {
  return status === "closed" || status === "unauthorized"
    ? "Offline. Reconnect to send messages."
    : "Offline. Messages send when you reconnect.";
}

/** Calls back when the title changes, but not when it loads. */
function useRenamed(title: string | null | undefined, onRenamed: () => void): void {
  const known = useRef(title);
  useEffect(() => {
    if (known.current !== undefined && known.current !== title) onRenamed();
    known.current = title;
  }, [title, onRenamed]);
}

/** The page that starts a conversation: choose an agent, then send the first message. */
import { useState } from "react";
import type { UseAgentsResult } from "../../../src/client/react/index.ts";
import { client } from "../client.ts";
import { contentOf, type Draft } from "../content.ts";
import { putFirstMessage } from "../first-message.ts";
import { messageOf, titleFrom } from "../format.ts";
import { conversationPath } from "../route.ts";
import { navigate } from "../router.ts";
import { AgentPicker } from "./agent-picker.tsx";
import { Composer } from "./composer.tsx";
import { ErrorNote } from "./error-note.tsx";
import { Loading } from "./loading.tsx";
import { NoAgents } from "./no-agents.tsx";
import { PageHeader } from "./page-header.tsx";
import { Suggestions } from "./suggestions.tsx";

interface NewConversationPageProps {
  /** The agent that the address chooses. */
  agentId: string | undefined;
  agents: UseAgentsResult;
  onCreated: () => void;
  onMenu: (() => void) | undefined;
}

export function NewConversationPage({ agentId: asked, agents, onCreated, onMenu }: NewConversationPageProps) {
  const [chosen, setChosen] = useState<string | null>(asked ?? null);
  const [creating, setCreating] = useState(false);
  const [error, setError] = useState<unknown>(undefined);
  const { agents: all, loading, error: listError, refresh } = agents;
  const list = all.filter(({ personaMissing }) => !personaMissing);
  const agentId = chosen ?? list[0]?.id;

  async function start(draft: Draft): Promise<boolean> {
    if (agentId === undefined || creating) return false;
    setCreating(true);
    setError(undefined);
    try {
      // The first message gives the title. A message of files only has no text.
      const [file] = draft.text.trim() === "" ? draft.files : [];
      const named = file === undefined ? {} : { title: titleFrom(file.name) };
      const { id } = await client.conversations.create({ agentId, ...named });
      putFirstMessage(id, await contentOf(id, draft));
      onCreated();
      navigate(conversationPath(id));
      return true;
    } catch (reason) {
      setError(reason);
      setCreating(false);
      return false;
    }
  }

  return (
    <>
      <PageHeader title="New conversation" onMenu={onMenu} />
      <div className="relative min-h-0 flex-1 overflow-y-auto">
        <div className="mx-auto flex min-h-full max-w-3xl flex-col justify-center gap-8 px-4 py-8">
          <div>
            <h2 className="text-2xl font-semibold tracking-tight">Choose an agent</h2>
            <p className="mt-1.5 text-muted">
              Conversations are durable: you can close this page and the answer continues.
            </p>
          </div>
          {list.length > 0 && (
            <>
              <AgentPicker agents={list} value={agentId} onChange={setChosen} />
              <Suggestions
                agentId={agentId}
                besidePicker
                onPick={(text) => void start({ text, files: [] })}
              />
            </>
          )}
          {list.length === 0 && !loading && listError === undefined && <NoAgents />}
          {loading && <Loading label="Loading agents" />}
          {listError !== undefined && <ErrorNote text={messageOf(listError)} onRetry={refresh} />}
          {error !== undefined && <ErrorNote text={messageOf(error)} />}
        </div>
      </div>
      <Composer place="new" onSend={start} disabled={agentId === undefined} />
    </>
  );
}

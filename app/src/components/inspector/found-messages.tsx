/** The messages that a search finds, the newest first. Each leads to its turn. */
import { type ReactNode, useCallback } from "react";
import type { AgentSummary, FoundMessage } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { messageOf, momentOf } from "../../format.ts";
import { type PageOptions, usePages } from "../../hooks/use-pages.ts";
import { plainSnippet } from "../../inspector/plain-snippet.ts";
import { choiceOf, messageSearchOf } from "../../inspector/turn-filter.ts";
import { nameAmong } from "../../names.ts";
import { turnPath } from "../../route.ts";
import { ErrorNote } from "../error-note.tsx";
import { Link } from "../link.tsx";
import { LoadMore } from "../load-more.tsx";
import { Loading } from "../loading.tsx";

interface FoundMessagesProps {
  /** The query string: the words and the filters. */
  search: string;
  agents: readonly AgentSummary[];
}

export function FoundMessages({ search, agents }: FoundMessagesProps) {
  const load = useCallback(
    async ({ order: _order, ...page }: PageOptions) => {
      const { messages, ...rest } = await client.messages.search({
        ...page,
        ...messageSearchOf(choiceOf(search), new Date()),
      });
      return { items: messages, ...rest };
    },
    [search],
  );
  const { value: messages, error, more, loadMore, reload } = usePages<FoundMessage>(load);
  return (
    <>
      {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
      {messages === undefined && error === undefined && <Loading label="Searching messages" />}
      {messages?.length === 0 && (
        <p className="px-1 py-2 text-sm text-muted">No message has these words. It may appear in a moment.</p>
      )}
      {messages !== undefined && messages.length > 0 && (
        <ul
          aria-label="Messages"
          className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-surface"
        >
          {messages.map((message) => (
            <li key={`${message.conversationId} ${message.messageId}`}>
              <Message message={message} agentName={nameAmong(agents, message.agentId)} />
            </li>
          ))}
        </ul>
      )}
      {more && <LoadMore onClick={loadMore} />}
    </>
  );
}

function Message({ message, agentName }: { message: FoundMessage; agentName: string }) {
  const { conversationId, title = "Untitled conversation", turnId, userId, role, time } = message;
  const isAgent = role === "agent";
  return (
    <Link
      to={turnPath(conversationId, turnId)}
      data-testid="found-message"
      className="block space-y-1 px-4 py-2.5 text-xs hover:bg-sunken"
    >
      <span className="flex items-baseline justify-between gap-4">
        <span data-testid="found-title" className="min-w-0 truncate text-sm font-medium">
          {title}
        </span>
        <time dateTime={time} className="shrink-0 text-muted tabular-nums">
          {momentOf(time, new Date())}
        </time>
      </span>
      <span className="block truncate text-muted">
        {isAgent ? agentName : (userId ?? "Another agent")}
        {isAgent ? userId !== undefined && ` for ${userId}` : ` to ${agentName}`}
      </span>
      <span className="block text-sm wrap-anywhere">{markedText(message)}</span>
    </Link>
  );
}

/** Returns the snippet with its found words marked. */
function markedText(message: FoundMessage): ReactNode[] {
  const { snippet, marks } = plainSnippet(message);
  const parts: ReactNode[] = [];
  let at = 0;
  for (const [from = 0, to = 0] of marks) {
    parts.push(snippet.slice(at, from), <mark key={from}>{snippet.slice(from, to)}</mark>);
    at = to;
  }
  return [...parts, snippet.slice(at)];
}

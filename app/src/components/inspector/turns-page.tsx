/** The turns of all conversations: a list with filters, which the address keeps. With a text, it lists messages. */
import { useCallback } from "react";
import type { AgentSummary, TurnRecord } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { messageOf } from "../../format.ts";
import { useHasRole } from "../../hooks/use-me.ts";
import { usePageTitle } from "../../hooks/use-page-title.ts";
import { type PageOptions, usePages } from "../../hooks/use-pages.ts";
import { choiceOf, filterOf, searchOf } from "../../inspector/turn-filter.ts";
import { nameAmong } from "../../names.ts";
import { DEAD_LETTERS_PATH, TURNS_PATH } from "../../route.ts";
import { navigate } from "../../router.ts";
import { ErrorNote } from "../error-note.tsx";
import { LoadMore } from "../load-more.tsx";
import { Loading } from "../loading.tsx";
import { PageBody } from "../page-body.tsx";
import { HeaderLink, PageHeader } from "../page-header.tsx";
import { FoundMessages } from "./found-messages.tsx";
import { TurnFilters } from "./turn-filters.tsx";
import { TurnRow } from "./turn-row.tsx";

/** Milliseconds between two reads of the list. */
const REFRESH_MS = 10_000;

interface TurnsPageProps {
  agents: readonly AgentSummary[];
  /** The query string: the filters. */
  search: string;
  onMenu: (() => void) | undefined;
}

export function TurnsPage({ agents, search, onMenu }: TurnsPageProps) {
  const isSearch = choiceOf(search).text.trim() !== "";
  const title = isSearch ? "Messages" : "Turns";
  usePageTitle(title);
  const isOperator = useHasRole("operator");
  return (
    <>
      <PageHeader title={title} subtitle="All conversations that you may read" onMenu={onMenu}>
        {isOperator && (
          <HeaderLink to={DEAD_LETTERS_PATH} data-testid="dead-letters">
            Dead letters
          </HeaderLink>
        )}
      </PageHeader>
      <PageBody isWide>
        <TurnFilters
          search={search}
          agents={agents}
          onChange={(choice) => navigate(`${TURNS_PATH}${searchOf(choice)}`)}
        />
        {isSearch ? (
          <FoundMessages key={search} search={search} agents={agents} />
        ) : (
          <TurnList key={search} search={search} agents={agents} />
        )}
      </PageBody>
    </>
  );
}

function TurnList({ search, agents }: Pick<TurnsPageProps, "search" | "agents">) {
  const load = useCallback(
    async (page: PageOptions) => {
      const { turns, ...rest } = await client.turns.list({
        ...page,
        ...filterOf(choiceOf(search), new Date()),
      });
      return { items: turns, ...rest };
    },
    [search],
  );
  const { value: turns, error, more, loadMore, reload } = usePages<TurnRecord>(load, REFRESH_MS);
  return (
    <>
      {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
      {turns === undefined && error === undefined && <Loading label="Loading turns" />}
      {turns?.length === 0 && (
        <p className="px-1 py-2 text-sm text-muted">
          {search === "" ? "No turns yet." : "No turn fits these filters."}
        </p>
      )}
      {turns !== undefined && turns.length > 0 && (
        <ul
          aria-label="Turns"
          className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-surface"
        >
          {turns.map((turn) => (
            <TurnRow key={turn.id} turn={turn} agentName={nameAmong(agents, turn.agentId)} />
          ))}
        </ul>
      )}
      {more && <LoadMore onClick={loadMore} />}
    </>
  );
}

/** The memories of an agent that fit a choice: a list by pages, newest first, or the results of a search with their scores. */
import { useEffect } from "react";
import type { Memory, MemorySearchResult } from "../../../../src/client/index.ts";
import { messageOf } from "../../format.ts";
import { useMemories, useMemorySearch } from "../../hooks/use-memories.ts";
import { isLimited, type MemoryChoice, searchOf } from "../../memory/memory-choice.ts";
import { searchNotice } from "../../memory/memory-texts.ts";
import { ErrorNote } from "../error-note.tsx";
import { LoadMore } from "../load-more.tsx";
import { Loading } from "../loading.tsx";
import { MemoryItem } from "./memory-item.tsx";
import { MemoryScoreView } from "./memory-score.tsx";

interface MemoryResultsProps {
  agentId: string;
  choice: MemoryChoice;
  /** Grows with each change of a memory: the list is loaded again. */
  changes: number;
  openId: string | undefined;
  /** Gets the types of the memories that are shown. */
  onTypes: (types: readonly string[]) => void;
}

/** The caller remounts it for another choice. */
export function MemoryResults(props: MemoryResultsProps) {
  return props.choice.query === "" ? <MemoryList {...props} /> : <SearchResults {...props} />;
}

function MemoryList({ agentId, choice, changes, openId, onTypes }: MemoryResultsProps) {
  const { value: memories, error, more, loadMore, reload } = useMemories(agentId, choice);
  useReload(reload, changes);
  useTypes(memories, onTypes);
  return (
    <>
      {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
      {memories === undefined && error === undefined && <Loading label="Loading memories" />}
      {memories?.length === 0 && (
        <p className="px-1 py-2 text-sm text-muted">
          {isLimited(choice) ? "No memory fits this choice." : "No memories yet."}
        </p>
      )}
      {memories !== undefined && memories.length > 0 && (
        <ul aria-label="Memories, newest first" className="space-y-2">
          {memories.map((memory) => (
            <MemoryItem
              key={memory.id}
              memory={memory}
              isOpen={memory.id === openId}
              search={searchOf(choice)}
            />
          ))}
        </ul>
      )}
      {more && <LoadMore onClick={loadMore} />}
    </>
  );
}

function SearchResults({ agentId, choice, changes, openId, onTypes }: MemoryResultsProps) {
  const { value: result, error, reload } = useMemorySearch(agentId, choice);
  useReload(reload, changes);
  useTypes(
    result?.matches.map(({ memory }) => memory),
    onTypes,
  );
  return (
    <>
      {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
      {result === undefined && error === undefined && <Loading label="Searching" />}
      {result !== undefined && <Matches result={result} openId={openId} search={searchOf(choice)} />}
    </>
  );
}

interface MatchesProps {
  result: MemorySearchResult;
  openId?: string | undefined;
  /** The query of the address, which links to the results keep. */
  search?: string;
  /** Returns the name of an agent, in a search over several. */
  nameOf?: (agentId: string) => string;
}

/** The results of a search, the best first. */
export function Matches({ result: { matches, semantic }, openId, search = "", nameOf }: MatchesProps) {
  const notice = searchNotice(semantic);
  return (
    <>
      <p role="status" className="px-1 text-xs text-muted">
        {matches.length === 1 ? "1 result" : `${matches.length} results`}, the best first.
        {notice !== undefined && ` ${notice}`}
      </p>
      {matches.length > 0 && (
        <ul aria-label="Results" className="space-y-2">
          {matches.map(({ memory, score }) => (
            <MemoryItem
              key={memory.id}
              memory={memory}
              isOpen={memory.id === openId}
              search={search}
              agentName={nameOf?.(memory.agentId)}
            >
              <MemoryScoreView score={score} />
            </MemoryItem>
          ))}
        </ul>
      )}
    </>
  );
}

/** Calls `reload` whenever `changes` grows. */
function useReload(reload: () => void, changes: number): void {
  useEffect(() => {
    if (changes > 0) reload();
  }, [reload, changes]);
}

function useTypes(memories: readonly Memory[] | undefined, onTypes: MemoryResultsProps["onTypes"]): void {
  useEffect(() => {
    if (memories !== undefined) onTypes(memories.map(({ type }) => type));
  }, [memories, onTypes]);
}

/** The memory of an agent: lists, searches, and one memory beside them. On small screens the open memory takes the place of the list. */
import { type RefObject, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { DramatisClientError } from "../../../../src/client/index.ts";
import { messageOf } from "../../format.ts";
import { useMediaQuery } from "../../hooks/use-media-query.ts";
import { useMemoryStatus } from "../../hooks/use-memories.ts";
import { usePageTitle } from "../../hooks/use-page-title.ts";
import { choiceOf, searchOf } from "../../memory/memory-choice.ts";
import { agentPath, MEMORIES_PATH, memoryPath } from "../../route.ts";
import { navigate } from "../../router.ts";
import { ErrorNote } from "../error-note.tsx";
import { Icon } from "../icon.tsx";
import { Link } from "../link.tsx";
import { PageHeader } from "../page-header.tsx";
import { AddMemory } from "./add-memory.tsx";
import { MemoryDetails } from "./memory-details.tsx";
import { MemoryResults } from "./memory-results.tsx";
import { MemorySearch } from "./memory-search.tsx";
import { MemoryStatusLine } from "./memory-status.tsx";

interface MemoryPageProps {
  agentId: string;
  agentName: string;
  /** The memory that is open. */
  memoryId: string | undefined;
  /** The query string: the search and its filters. */
  search: string;
  onMenu: (() => void) | undefined;
}

/** The caller remounts it for another agent. */
export function MemoryPage({ agentId, agentName, memoryId, search, onMenu }: MemoryPageProps) {
  usePageTitle(`Memory of ${agentName}`);
  const isWide = useMediaQuery("(min-width: 64rem)");
  const choice = useMemo(() => choiceOf(search), [search]);
  const [changes, setChanges] = useState(0);
  const [note, setNote] = useState("");
  const [types, addTypes] = useKnown();
  const { value: status, error, reload } = useMemoryStatus(agentId);
  // A member sees only memories about itself, and cannot write.
  const isMember = error instanceof DramatisClientError && error.code === "FORBIDDEN";

  const list = useRef<HTMLElement>(null);
  const close = useCallback(() => navigate(memoryPath(agentId, undefined, search)), [agentId, search]);
  const onChanged = useCallback(() => {
    setNote("");
    setChanges((count) => count + 1);
    reload();
  }, [reload]);

  function leave(text: string) {
    onChanged();
    setNote(text);
    close();
  }

  const details = useRef<HTMLElement>(null);
  useMovedFocus(memoryId, list, details);

  return (
    <>
      <PageHeader title="Memory" subtitle={agentName} onMenu={onMenu}>
        <Link to={agentPath(agentId)} className="shrink-0 text-sm text-accent hover:underline">
          Agent
        </Link>
      </PageHeader>
      <div className="flex min-h-0 flex-1">
        <section
          ref={list}
          tabIndex={-1}
          aria-label="Memories"
          hidden={!isWide && memoryId !== undefined}
          className="relative min-w-0 flex-1 overflow-y-auto outline-none"
        >
          <div className="mx-auto max-w-3xl space-y-3 px-4 py-4">
            <p role="status" data-testid="memory-note" className={note === "" ? "sr-only" : "px-1 text-sm"}>
              {note}
            </p>
            {status !== undefined && <MemoryStatusLine status={status} />}
            {isMember && (
              <p className="px-1 text-xs text-muted">
                You see the memories about you. You can change and delete them.
              </p>
            )}
            {error !== undefined && !isMember && <ErrorNote text={messageOf(error)} onRetry={reload} />}
            <MemorySearch
              value={choice}
              onChange={(next) => navigate(memoryPath(agentId, memoryId, searchOf(next)))}
              types={types}
            />
            {status !== undefined && (
              <AddMemory
                agentId={agentId}
                types={types}
                onAdded={(id) => {
                  onChanged();
                  setNote("The memory was added.");
                  navigate(memoryPath(agentId, id, search));
                }}
              />
            )}
            <MemoryResults
              key={JSON.stringify(choice)}
              agentId={agentId}
              choice={choice}
              changes={changes}
              openId={memoryId}
              onTypes={addTypes}
            />
            {status !== undefined && (
              <Link
                to={MEMORIES_PATH}
                className="inline-block py-1 text-sm text-accent hover:underline pointer-coarse:py-2.5"
              >
                Search several agents
              </Link>
            )}
          </div>
        </section>
        {memoryId !== undefined && (
          <aside
            ref={details}
            tabIndex={-1}
            aria-label="The open memory"
            className={`relative space-y-3 overflow-y-auto p-4 outline-none ${isWide ? "w-md shrink-0 border-l border-line" : "min-w-0 flex-1"}`}
          >
            <div className="flex items-center gap-2">
              {!isWide && (
                <Link
                  to={memoryPath(agentId, undefined, search)}
                  className="flex-1 py-1 text-sm text-accent hover:underline pointer-coarse:py-2.5"
                >
                  All memories
                </Link>
              )}
              {isWide && <h2 className="min-w-0 flex-1 text-sm font-semibold">Details</h2>}
              <button
                type="button"
                onClick={close}
                aria-label="Close the memory"
                className="rounded-lg p-2 text-muted hover:text-ink"
              >
                <Icon name="cross" />
              </button>
            </div>
            <MemoryDetails
              key={memoryId}
              agentId={agentId}
              id={memoryId}
              types={types}
              changes={changes}
              onChanged={onChanged}
              onClose={close}
              onDeleted={() => leave("The memory was deleted.")}
            />
          </aside>
        )}
      </div>
    </>
  );
}

/** Gives the focus to the details of a memory that is opened, and back to its place in the list when they are closed. */
function useMovedFocus(
  memoryId: string | undefined,
  list: RefObject<HTMLElement | null>,
  details: RefObject<HTMLElement | null>,
): void {
  const last = useRef<string | undefined>(undefined);
  useEffect(() => {
    if (memoryId === last.current) return;
    const opener = list.current?.querySelector<HTMLElement>(`[data-memory="${last.current}"] a`);
    last.current = memoryId;
    (memoryId === undefined ? (opener ?? list.current) : details.current)?.focus({ preventScroll: true });
  }, [memoryId, list, details]);
}

/** Collects texts, in the order of the alphabet. */
function useKnown(): [known: readonly string[], add: (texts: readonly string[]) => void] {
  const [known, setKnown] = useState<readonly string[]>([]);
  const add = useCallback((texts: readonly string[]) => {
    setKnown((now) => {
      const all = new Set([...now, ...texts]);
      return all.size === now.length ? now : [...all].sort();
    });
  }, []);
  return [known, add];
}

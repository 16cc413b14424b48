/** One memory in a list or among results: the beginning of its text, and its facts on one line. */
import type { ReactNode } from "react";
import type { Memory } from "../../../../src/client/index.ts";
import { momentOf } from "../../format.ts";
import { STATE_TEXT, subjectText } from "../../memory/memory-texts.ts";
import { memoryPath } from "../../route.ts";
import { Link } from "../link.tsx";

interface MemoryItemProps {
  memory: Memory;
  /** The memory is open beside the list. */
  isOpen: boolean;
  /** The query of the address, which chooses what is listed. */
  search?: string;
  /** The name of its agent, in a list of several. */
  agentName?: string | undefined;
  /** Further lines. */
  children?: ReactNode;
}

export function MemoryItem({ memory, isOpen, search, agentName, children }: MemoryItemProps) {
  const { id, agentId, content, type, state, subject, speaker, time, createdAt, tainted } = memory;
  const when = time ?? createdAt;
  return (
    <li
      data-testid="memory-item"
      data-memory={id}
      className={`rounded-xl border bg-surface ${isOpen ? "border-accent" : "border-line"}`}
    >
      <Link
        to={memoryPath(agentId, id, search)}
        aria-current={isOpen ? "true" : undefined}
        className="block rounded-xl px-4 py-3 hover:bg-tint/60"
      >
        <span className="line-clamp-3 text-sm whitespace-pre-line wrap-anywhere">{content}</span>
        <span className="mt-1 flex flex-wrap gap-x-3 gap-y-0.5 text-xs text-muted">
          <span className="max-w-full truncate font-medium">{type}</span>
          {agentName !== undefined && <span className="max-w-full truncate">{agentName}</span>}
          {state !== "current" && <span className="text-caution">{STATE_TEXT[state]}</span>}
          {tainted === true && <span className="text-caution">From untrusted content</span>}
          {speaker !== undefined && <span className="max-w-full truncate">Said by {speaker}</span>}
          {subjectText(subject) !== undefined && (
            <span className="max-w-full truncate">{subjectText(subject)}</span>
          )}
          <time dateTime={when}>{momentOf(when, new Date())}</time>
        </span>
      </Link>
      {children}
    </li>
  );
}

/** Why a memory is there: its sources, the memories that it was made of, and the log of its changes. */
import type { ReactNode } from "react";
import type { MemoryLogEntry, MemorySource } from "../../../../src/protocol/memory-schemas.ts";
import { momentOf } from "../../format.ts";
import type { ExplainedMemory } from "../../hooks/use-memories.ts";
import { changeText, validityText } from "../../memory/memory-texts.ts";
import { conversationPath, memoryPath, runPath } from "../../route.ts";
import { Link } from "../link.tsx";

export function MemoryOrigin({ value: { memory, sources, derivedFrom, log } }: { value: ExplainedMemory }) {
  return (
    <>
      {sources.length > 0 && (
        <section aria-label="Sources" data-testid="memory-sources" className="space-y-1">
          <h3 className="text-xs font-medium text-muted">Comes from</h3>
          <Sources sources={sources} />
        </section>
      )}
      {derivedFrom.length > 0 && (
        <section aria-label="Made of" data-testid="memory-parts" className="space-y-1">
          <h3 className="text-xs font-medium text-muted">Made of</h3>
          <ul>
            {derivedFrom.map((id) => (
              <li key={id}>
                <TextLink to={memoryPath(memory.agentId, id)}>{id}</TextLink>
              </li>
            ))}
          </ul>
        </section>
      )}
      <section aria-label="History" data-testid="memory-log" className="space-y-1">
        <h3 className="text-xs font-medium text-muted">History</h3>
        <ol className="space-y-2">
          {log.map((entry) => (
            <LogEntry key={`${entry.version} ${entry.change}`} entry={entry} />
          ))}
        </ol>
      </section>
    </>
  );
}

function Sources({ sources }: { sources: readonly MemorySource[] }) {
  return (
    <ul className="space-y-0.5">
      {sources.map(({ conversationId, turnId }) => (
        <li key={`${conversationId} ${turnId}`}>
          <TextLink to={conversationPath(conversationId, turnId)}>A turn of a conversation</TextLink>
          <span className="block font-mono text-[0.6875rem] text-muted wrap-anywhere">
            {conversationId} · {turnId}
          </span>
        </li>
      ))}
    </ul>
  );
}

function LogEntry({ entry }: { entry: MemoryLogEntry }) {
  const { version, at, by, before } = entry;
  return (
    <li
      data-testid="memory-change"
      data-change={entry.change}
      className="border-l-2 border-line pl-3 text-xs"
    >
      <p className="wrap-anywhere">
        <span className="text-muted">Version {version}:</span> {changeText(entry)},{" "}
        <time dateTime={at}>{momentOf(at, new Date())}</time>
      </p>
      {"turnId" in by && (
        <TextLink to={conversationPath(by.conversationId, by.turnId)}>Show the turn</TextLink>
      )}
      {by.kind === "run" && <TextLink to={runPath(by.runId)}>Show the run</TextLink>}
      {before !== undefined && (
        <details>
          <summary className="py-0.5 text-muted hover:text-ink pointer-coarse:py-2">The text before</summary>
          <p className="whitespace-pre-wrap wrap-anywhere">{before.content}</p>
          <p className="text-muted">It was true {validityText(before, new Date())}.</p>
        </details>
      )}
    </li>
  );
}

function TextLink({ to, children }: { to: string; children: ReactNode }) {
  return (
    <Link
      to={to}
      className="inline-block py-0.5 text-xs text-accent underline wrap-anywhere pointer-coarse:py-2"
    >
      {children}
    </Link>
  );
}

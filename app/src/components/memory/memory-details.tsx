/** One memory: its whole text, its metadata, its sources, and the allowed actions. */
import { useEffect, useState } from "react";
import { DramatisClientError, type Memory } from "../../../../src/client/index.ts";
import { messageOf, momentOf } from "../../format.ts";
import { useEscape } from "../../hooks/use-escape.ts";
import { type ExplainedMemory, useMemory } from "../../hooks/use-memories.ts";
import { STATE_MEANING, STATE_TEXT, validityText } from "../../memory/memory-texts.ts";
import { conversationPath } from "../../route.ts";
import { ErrorNote } from "../error-note.tsx";
import { type Fact, Facts } from "../facts.tsx";
import { JsonView } from "../json-view.tsx";
import { Link } from "../link.tsx";
import { Loading } from "../loading.tsx";
import { EditMemory } from "./edit-memory.tsx";
import { MemoryActions } from "./memory-actions.tsx";
import { MemoryOrigin } from "./memory-origin.tsx";

interface MemoryDetailsProps {
  agentId: string;
  id: string;
  /** Types to suggest. */
  types: readonly string[];
  /** Grows with each change of a memory: the shown memory is loaded again. */
  changes: number;
  onChanged: () => void;
  onClose: () => void;
  onDeleted: () => void;
}

export function MemoryDetails({
  agentId,
  id,
  types,
  changes,
  onChanged,
  onClose,
  onDeleted,
}: MemoryDetailsProps) {
  const { value, error, reload } = useMemory(agentId, id);
  const [isEditing, setEditing] = useState(false);

  // Escape would discard the typed text.
  useEscape(isEditing ? undefined : onClose);

  useEffect(() => {
    if (changes > 0) reload();
  }, [changes, reload]);

  const isGone = error instanceof DramatisClientError && error.code === "NOT_FOUND";
  if (isGone) return <p className="text-sm text-muted">Memory not found. It may have been deleted.</p>;
  return (
    <div data-testid="memory-details" data-memory={id} className="space-y-4 text-sm">
      {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
      {value === undefined && error === undefined && <Loading label="Loading the memory" />}
      {value !== undefined && (
        <>
          {isEditing ? (
            <EditMemory
              memory={value.memory}
              types={types}
              onSaved={() => {
                setEditing(false);
                onChanged();
              }}
              onNewer={reload}
              onCancel={() => setEditing(false)}
            />
          ) : (
            <MemoryText memory={value.memory} />
          )}
          {!isEditing && (
            <MemoryActions
              memory={value.memory}
              onEdit={() => setEditing(true)}
              onChanged={onChanged}
              onDeleted={onDeleted}
            />
          )}
          <MemoryFacts value={value} />
          <MemoryOrigin value={value} />
        </>
      )}
    </div>
  );
}

function MemoryText({ memory: { content, tainted } }: { memory: Memory }) {
  return (
    <>
      <p data-testid="memory-text" className="whitespace-pre-wrap wrap-anywhere">
        {content}
      </p>
      {tainted === true && (
        <p className="rounded-lg bg-caution-tint px-3 py-2 text-xs text-caution">
          This memory comes from untrusted content, such as a document. The agent sees this mark.
        </p>
      )}
    </>
  );
}

function MemoryFacts({ value: { memory } }: { value: ExplainedMemory }) {
  const { state, type, significance, speaker, session, sequence, time, subject, key, version } = memory;
  const { createdAt, updatedAt, metadata, id } = memory;
  const now = new Date();
  const { userId, conversationId } = subject;
  const facts: Fact[] = [
    ["State", `${STATE_TEXT[state]}. ${STATE_MEANING[state]}`],
    ["True", validityText(memory, now)],
    ["Type", type],
    ["Importance", String(significance)],
    ["Happened", time === undefined ? undefined : momentOf(time, now)],
    ["Said by", speaker],
    [
      "Session",
      session === undefined
        ? undefined
        : [session, sequence].filter((part) => part !== undefined).join(", no. "),
    ],
    ["User", userId],
    ["Conversation", conversationId === undefined ? undefined : linkTo(conversationId)],
    ["Key", key],
    ["Version", String(version)],
    ["Written", momentOf(createdAt, now)],
    ["Changed", updatedAt === createdAt ? undefined : momentOf(updatedAt, now)],
    ["Id", id],
  ];
  return (
    <section aria-label="About this memory" data-testid="memory-facts" className="space-y-3">
      <Facts facts={facts} />
      {Object.keys(metadata).length > 0 && <JsonView label="Metadata" value={metadata} exact />}
    </section>
  );
}

function linkTo(conversationId: string) {
  return (
    <Link to={conversationPath(conversationId)} className="text-accent underline">
      {conversationId}
    </Link>
  );
}

/** The actions on a memory: change it, archive it, delete it. The last two need a second click. */
import { useState } from "react";
import type { Memory } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { problemText } from "../../format.ts";
import { ConfirmedButton } from "../confirmed-button.tsx";
import { ErrorNote } from "../error-note.tsx";

interface MemoryActionsProps {
  memory: Memory;
  onEdit: () => void;
  onChanged: () => void;
  onDeleted: () => void;
}

export function MemoryActions({ memory, onEdit, onChanged, onDeleted }: MemoryActionsProps) {
  const { agentId, id, state } = memory;
  const [error, setError] = useState<unknown>(undefined);
  const isArchived = state === "archived";
  return (
    <div className="space-y-2">
      <div className="flex flex-wrap gap-2">
        {!isArchived && (
          <button
            type="button"
            onClick={onEdit}
            data-testid="edit"
            className="rounded-lg border border-line px-3 py-1.5 text-sm font-medium hover:bg-sunken"
          >
            Edit
          </button>
        )}
        {!isArchived && (
          <ConfirmedButton
            texts={{ idle: "Archive", asking: "Take it out of searches?", working: "Archiving…" }}
            needsSecond={true}
            className="text-caution"
            testId="archive"
            onConfirm={async () => {
              await client.memories.archive(agentId, id);
              onChanged();
            }}
            onError={setError}
          />
        )}
        <ConfirmedButton
          texts={{ idle: "Delete", asking: "Erase it for good?", working: "Deleting…" }}
          needsSecond={true}
          className="text-danger"
          testId="delete-memory"
          onConfirm={async () => {
            await client.memories.delete(agentId, id);
            onDeleted();
          }}
          onError={setError}
        />
      </div>
      <p className="text-xs text-muted">Deleting erases its text everywhere, also in its history.</p>
      {error !== undefined && <ErrorNote text={problemText(error)} />}
    </div>
  );
}

/**
 * Changes a memory. If another person changed it first, saving fails. The form then shows the newer version and keeps the
 * typed text. The next save replaces that version.
 */
import { useState } from "react";
import { DramatisClientError, type Memory } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { changeOf, draftOf, rebased } from "../../memory/memory-draft.ts";
import { MemoryForm } from "./memory-form.tsx";

interface EditMemoryProps {
  memory: Memory;
  types: readonly string[];
  onSaved: () => void;
  /** Loads the memory again, which has a newer version. */
  onNewer: () => void;
  onCancel: () => void;
}

export function EditMemory({ memory, types, onSaved, onNewer, onCancel }: EditMemoryProps) {
  const [base, setBase] = useState(memory);
  const [draft, setDraft] = useState(() => draftOf(memory));
  const [isLate, setLate] = useState(false);
  const { agentId, id } = memory;

  async function save() {
    const change = changeOf(base, draft);
    if (change === undefined) return onCancel();
    try {
      await client.memories.update(agentId, id, change);
      onSaved();
    } catch (error) {
      if (!(error instanceof DramatisClientError) || error.code !== "CONFLICT") throw error;
      const newer = await client.memories.get(agentId, id);
      // Not a version conflict: the server's message names it.
      if (newer.version === base.version) throw error;
      setDraft(rebased(draft, base, newer));
      setBase(newer);
      setLate(true);
      onNewer();
    }
  }

  return (
    <section aria-label="Edit this memory" data-testid="edit-memory" className="space-y-3">
      {isLate && (
        <div role="alert" className="space-y-1 rounded-lg bg-caution-tint px-3 py-2 text-xs text-caution">
          <p>
            Another person has changed this memory. Your change is not saved yet. Version {base.version} is:
          </p>
          <blockquote className="border-l-2 border-current/40 pl-2 whitespace-pre-wrap wrap-anywhere">
            {base.content}
          </blockquote>
          <p>Save again to replace it, or cancel to keep it.</p>
        </div>
      )}
      <MemoryForm
        draft={draft}
        onDraft={setDraft}
        isNew={false}
        types={types}
        texts={{ submit: "Save", working: "Saving…" }}
        onSubmit={save}
        onCancel={onCancel}
      />
    </section>
  );
}

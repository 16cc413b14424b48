/** Adds a memory to an agent. */
import { useState } from "react";
import { client } from "../../client.ts";
import { EMPTY_DRAFT, inputOf, type MemoryDraft } from "../../memory/memory-draft.ts";
import { MemoryForm } from "./memory-form.tsx";

interface AddMemoryProps {
  agentId: string;
  types: readonly string[];
  /** Gets the id of the memory. */
  onAdded: (id: string) => void;
}

export function AddMemory({ agentId, types, onAdded }: AddMemoryProps) {
  const [isOpen, setOpen] = useState(false);
  const [draft, setDraft] = useState(EMPTY_DRAFT);
  // A retry with the same key writes the memory once, also after a lost answer. A change of the draft makes a new key.
  const [attempt, setAttempt] = useState(newAttempt);

  function change(next: MemoryDraft) {
    setDraft(next);
    setAttempt(newAttempt);
  }

  async function add() {
    const { id } = await client.memories.write(agentId, { ...inputOf(draft), idempotencyKey: attempt });
    change(EMPTY_DRAFT);
    setOpen(false);
    onAdded(id);
  }

  return (
    <details
      open={isOpen}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
      data-testid="add-memory"
      className="rounded-xl border border-line bg-surface"
    >
      <summary className="rounded-xl px-4 py-3 text-sm font-medium">Add a memory</summary>
      <div className="border-t border-line p-4">
        <MemoryForm
          draft={draft}
          onDraft={change}
          isNew
          types={types}
          texts={{ submit: "Add memory", working: "Adding…" }}
          onSubmit={add}
        />
      </div>
    </details>
  );
}

function newAttempt(): string {
  return `console-${crypto.randomUUID()}`;
}

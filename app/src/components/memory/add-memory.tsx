/** Adds a memory to an agent. */
import { useState } from "react";
import { client } from "../../client.ts";
import { EMPTY_DRAFT, inputOf, type MemoryDraft } from "../../memory/memory-draft.ts";
import { NewForm } from "../new-form.tsx";
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
    <NewForm text="New memory" testId="add-memory" isOpen={isOpen} onToggle={setOpen}>
      <MemoryForm
        draft={draft}
        onDraft={change}
        isNew
        types={types}
        texts={{ submit: "Add memory", working: "Adding…" }}
        onSubmit={add}
      />
    </NewForm>
  );
}

function newAttempt(): string {
  return `console-${crypto.randomUUID()}`;
}

/** Erases messages and tool calls of a turn that is over, each after a second click. */
import { useContext, useState } from "react";
import type { TurnState } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { ConversationId } from "../conversation-id.ts";
import { type ErasableEntry, erasableOf } from "../erasable.ts";
import { problemText } from "../format.ts";
import { ConfirmedButton } from "./confirmed-button.tsx";
import { DialogPanel } from "./dialog-panel.tsx";
import { ErrorNote } from "./error-note.tsx";

interface EraseDialogProps {
  turn: TurnState;
  /** Returns the name of an agent. */
  nameOf: (agentId: string) => string;
  onClose: () => void;
}

export function EraseDialog({ turn, nameOf, onClose }: EraseDialogProps) {
  return (
    <DialogPanel
      title="Erase from this turn"
      facts={
        <p className="text-xs text-muted">
          Erasing removes the content everywhere, permanently. It also removes memories that agents learned
          only from it.
        </p>
      }
      closeLabel="Close the list"
      testId="erase"
      onClose={onClose}
    >
      <ul aria-label="Messages and calls" className="divide-y divide-line">
        {erasableOf(turn, nameOf).map((entry) => (
          <Entry key={entry.id} entry={entry} />
        ))}
      </ul>
    </DialogPanel>
  );
}

function Entry({ entry: { id, name, preview, isErased } }: { entry: ErasableEntry }) {
  const conversationId = useContext(ConversationId);
  const [error, setError] = useState<unknown>(undefined);
  return (
    <li data-testid="erasable" data-entry={id} className="space-y-2 px-2 py-2 text-sm">
      <div className="flex flex-wrap items-center gap-2">
        <p className="min-w-0 flex-1 basis-48 wrap-anywhere">
          <span className="block text-xs text-muted">{name}</span>
          {preview}
        </p>
        {isErased ? (
          <span role="status" className="text-xs text-muted">
            Erased
          </span>
        ) : (
          <ConfirmedButton
            texts={{ idle: "Erase", asking: "Erase it for good?", working: "Erasing…" }}
            needsSecond={true}
            className="text-danger"
            testId="erase-entry"
            onConfirm={() => client.conversations.erase(conversationId, id)}
            onError={setError}
          />
        )}
      </div>
      {error !== undefined && <ErrorNote text={problemText(error)} />}
    </li>
  );
}

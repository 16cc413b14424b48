/** A button that deletes a thing after a second press. */
import { ConfirmedAction } from "./confirmed-action.tsx";

interface DeleteActionProps {
  /** The kind of the thing, such as `agent`. The test id is `delete-agent`. */
  kind: string;
  asking: string;
  /** What goes and what stays. */
  note: string;
  onDelete: () => Promise<void>;
}

export function DeleteAction({ kind, asking, note, onDelete }: DeleteActionProps) {
  return (
    <ConfirmedAction
      texts={{ idle: `Delete ${kind}`, asking, working: "Deleting…" }}
      className="text-danger wrap-anywhere"
      testId={`delete-${kind}`}
      note={note}
      onConfirm={onDelete}
    />
  );
}

/** Opens the trace of a turn. */
import { useCallback, useState } from "react";
import type { TurnState } from "../../../src/client/index.ts";
import { TraceDialog } from "./trace-dialog.tsx";

interface TraceButtonProps {
  turn: TurnState;
  /** Returns the name of an agent. */
  nameOf: (agentId: string) => string;
}

export function TraceButton({ turn, nameOf }: TraceButtonProps) {
  const [open, setOpen] = useState(false);
  const close = useCallback(() => setOpen(false), []);
  return (
    <div aria-live="off">
      <button
        type="button"
        onClick={() => setOpen(true)}
        aria-haspopup="dialog"
        data-testid="open-trace"
        className="rounded-lg py-1 text-xs text-accent underline pointer-coarse:py-2.5"
      >
        Trace
        <span className="sr-only"> of this answer</span>
      </button>
      {open && <TraceDialog turn={turn} nameOf={nameOf} onClose={close} />}
    </div>
  );
}

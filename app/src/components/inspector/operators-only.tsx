/** Shows content to operators only. The server refuses it to other readers, too. */
import type { ReactNode } from "react";
import { useHasRole } from "../../hooks/use-me.ts";

interface OperatorsOnlyProps {
  /** The subject of the message for other readers, such as "the request of a turn". */
  what: string;
  children: ReactNode;
}

export function OperatorsOnly({ what, children }: OperatorsOnlyProps) {
  if (useHasRole("operator")) return children;
  return (
    <p
      data-testid="operators-only"
      className="rounded-xl border border-line bg-surface p-4 text-sm text-muted"
    >
      Only operators and administrators can read {what}.
    </p>
  );
}

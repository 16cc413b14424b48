/** Shows content to operators only. The server refuses it to other readers, too. */
import type { ReactNode } from "react";
import { useIsOperator } from "../../hooks/use-me.ts";
import { Loading } from "../loading.tsx";

interface OperatorsOnlyProps {
  /** The subject of the message for other readers, such as "the request of a turn". */
  what: string;
  children: ReactNode;
}

export function OperatorsOnly({ what, children }: OperatorsOnlyProps) {
  const isOperator = useIsOperator();
  if (isOperator === undefined) return <Loading label="Loading your roles" />;
  if (isOperator) return children;
  return (
    <p
      data-testid="operators-only"
      className="rounded-xl border border-line bg-surface p-4 text-sm text-muted"
    >
      Only operators and administrators can read {what}.
    </p>
  );
}

/** The decision of a policy about a call: its rule, its reason, and the untrusted content that led to the call. */
import { type Decided, taintText } from "../policy-texts.ts";

interface PolicyNoteProps {
  decided: Decided;
  isDenied?: boolean;
}

export function PolicyNote({ decided, isDenied = false }: PolicyNoteProps) {
  const { rule, reason } = decided;
  const taint = taintText(decided);
  if (rule === undefined && reason === undefined && taint === undefined) return null;
  return (
    <div
      data-testid="policy"
      className={`space-y-1 rounded-lg p-2 text-xs wrap-anywhere ${isDenied ? "bg-danger-tint" : "bg-caution-tint"}`}
    >
      {(rule !== undefined || reason !== undefined) && (
        <p>
          {reason}{" "}
          {rule !== undefined && (
            <span className="text-muted">
              {isDenied ? "Denied by the rule" : "Rule"}: {rule}
            </span>
          )}
        </p>
      )}
      {taint !== undefined && <p>{taint}</p>}
    </div>
  );
}

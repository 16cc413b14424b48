/** A question that an MCP server asks during a call: its text, and the fields of the answer. */
import type { ElicitationView } from "../../../src/client/index.ts";
import { GateFields, type GateFieldsProps } from "./gate-field.tsx";

export function ElicitedQuestion({ question, ...fields }: GateFieldsProps & { question: ElicitationView }) {
  const { message, host } = question;
  return (
    <div className="space-y-3" data-testid="elicitation">
      <p>The server of this tool asks you during the call. It gets your answer.</p>
      <blockquote className="border-l-2 border-line pl-3 whitespace-pre-wrap wrap-anywhere">
        {message}
      </blockquote>
      {host !== undefined && (
        <p>
          It wants you to open an address at <span className="font-mono wrap-anywhere">{host}</span>. This
          page does not open it.
        </p>
      )}
      <GateFields {...fields} />
    </div>
  );
}

/** A question that an MCP server asks during a call: its text, and the fields of the answer. */
import type { ElicitationView } from "../../../src/client/index.ts";
import { FORM, type GateErrors, type GateField, type GateTexts } from "../runs/gate-form.ts";
import { ErrorNote } from "./error-note.tsx";
import { GateFieldView } from "./gate-field.tsx";

interface ElicitedQuestionProps {
  question: ElicitationView;
  fields: readonly GateField[];
  texts: GateTexts;
  errors: GateErrors;
  onType: (texts: GateTexts) => void;
}

export function ElicitedQuestion({ question, fields, texts, errors, onType }: ElicitedQuestionProps) {
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
      {fields.map((field) => (
        <GateFieldView
          key={field.pointer}
          field={field}
          text={texts[field.pointer] ?? field.initial}
          error={errors.get(field.pointer)}
          onChange={(text) => onType({ ...texts, [field.pointer]: text })}
        />
      ))}
      {errors.has(FORM) && <ErrorNote text={errors.get(FORM) ?? ""} />}
    </div>
  );
}

/** The fields of the answer to a question, with their errors. */
import type { ChangeEvent } from "react";
import { numberText } from "../readable.ts";
import { FORM, type GateErrors, type GateField, type GateTexts } from "../runs/gate-form.ts";
import { ErrorNote } from "./error-note.tsx";
import { type ControlProps, FIELD, Field } from "./field.tsx";

export interface GateFieldsProps {
  fields: readonly GateField[];
  texts: GateTexts;
  errors: GateErrors;
  onType: (texts: GateTexts) => void;
}

/** The fields of an answer, and the error of the whole form. */
export function GateFields({ fields, texts, errors, onType }: GateFieldsProps) {
  return (
    <>
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
    </>
  );
}

interface GateFieldProps {
  field: GateField;
  text: string;
  error: string | undefined;
  onChange: (text: string) => void;
}

function GateFieldView({ field, text, error, onChange }: GateFieldProps) {
  const { pointer, label, description, isRequired, kind } = field;
  return (
    <Field
      label={`${label}${kind === "json" ? " (JSON)" : ""}${isRequired ? "" : " (optional)"}`}
      description={description}
      error={error}
    >
      {(control) => (
        <>
          <Control
            field={field}
            control={{
              ...control,
              value: text,
              "data-field": pointer,
              "aria-required": isRequired,
              onChange: ({ target }) => onChange(target.value),
            }}
          />
          {kind === "number" && <Amount text={text} />}
        </>
      )}
    </Field>
  );
}

/** A large number with separators, so that the reader can count its digits. */
function Amount({ text }: { text: string }) {
  const amount = numberText(Number(text));
  return amount === undefined || text.trim() === "" ? null : <p className="text-xs text-muted">{amount}</p>;
}

interface GateControlProps {
  field: GateField;
  control: ControlProps & {
    value: string;
    "data-field": string;
    "aria-required": boolean;
    onChange: (event: ChangeEvent<HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement>) => void;
  };
}

function Control({ field: { kind, options, isRequired, maxLength }, control }: GateControlProps) {
  const limit = maxLength === undefined ? {} : { maxLength };
  switch (kind) {
    case "line":
      return <input type="text" autoComplete="off" {...limit} {...control} className={FIELD} />;
    case "text":
      return <textarea rows={2} {...limit} {...control} className={FIELD} />;
    case "date":
      return <input type="date" {...control} className={FIELD} />;
    case "time":
      return <input type="datetime-local" {...control} className={FIELD} />;
    case "number":
      return <input type="text" inputMode="decimal" autoComplete="off" {...control} className={FIELD} />;
    case "boolean":
    case "choice":
      return (
        <select {...control} className={FIELD}>
          <option value="">{isRequired ? "Choose…" : "No answer"}</option>
          {(kind === "choice" ? options : ["true", "false"]).map((option) => (
            <option key={option} value={option}>
              {optionText(option)}
            </option>
          ))}
        </select>
      );
    case "json":
      return <textarea rows={5} spellCheck={false} {...control} className={`${FIELD} font-mono`} />;
    default:
      return kind satisfies never;
  }
}

function optionText(option: string): string {
  const value: unknown = JSON.parse(option);
  if (typeof value === "boolean") return value ? "Yes" : "No";
  return typeof value === "string" ? value : option;
}

/** One field of the answer to a question, with what is wrong with it. */
import { type ChangeEvent, useId } from "react";
import type { GateField } from "../runs/gate-form.ts";

const FIELD =
  "block w-full min-w-0 rounded-lg border border-line bg-canvas px-3 py-2 text-base text-ink aria-invalid:border-danger sm:text-sm";

interface GateFieldProps {
  field: GateField;
  text: string;
  error: string | undefined;
  onChange: (text: string) => void;
}

export function GateFieldView({ field, text, error, onChange }: GateFieldProps) {
  const id = useId();
  const { pointer, label, description, isRequired } = field;
  const notes = [
    ...(description === undefined ? [] : [`${id}-about`]),
    ...(error === undefined ? [] : [`${id}-error`]),
  ];
  const control = {
    id,
    value: text,
    "data-field": pointer,
    "aria-required": isRequired,
    "aria-invalid": error !== undefined,
    ...(notes.length === 0 ? {} : { "aria-describedby": notes.join(" ") }),
    onChange: ({ target }: ChangeEvent<HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement>) =>
      onChange(target.value),
  };
  return (
    <div className="space-y-1">
      <label htmlFor={id} className="block text-xs text-muted">
        {label}
        {field.kind === "json" && " (JSON)"}
        {!isRequired && " (optional)"}
      </label>
      {description !== undefined && (
        <p id={`${id}-about`} className="text-xs text-muted wrap-anywhere">
          {description}
        </p>
      )}
      <Control field={field} control={control} />
      {error !== undefined && (
        <p id={`${id}-error`} className="text-xs whitespace-pre-wrap text-danger wrap-anywhere">
          {error}
        </p>
      )}
    </div>
  );
}

interface ControlProps {
  field: GateField;
  control: {
    id: string;
    value: string;
    onChange: (event: ChangeEvent<HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement>) => void;
  };
}

function Control({ field: { kind, options, isRequired, maxLength }, control }: ControlProps) {
  const limit = maxLength === undefined ? {} : { maxLength };
  switch (kind) {
    case "line":
      return <input type="text" autoComplete="off" {...limit} {...control} className={FIELD} />;
    case "text":
      return <textarea rows={2} {...limit} {...control} className={FIELD} />;
    case "date":
      return <input type="date" {...control} className={FIELD} />;
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

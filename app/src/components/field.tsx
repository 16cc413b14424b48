/** A field of a form: its label, its description, its control, and the error of its value. */
import { type ReactNode, useId } from "react";

/** The look of a control. */
export const FIELD =
  "block w-full min-w-0 rounded-lg border border-muted/70 bg-canvas px-3 py-2 text-base text-ink aria-invalid:border-danger disabled:text-muted sm:text-sm";

/** Attributes that tie a control to its label and its notes. */
export interface ControlProps {
  id: string;
  "aria-invalid": boolean;
  "aria-describedby"?: string;
}

interface FieldProps {
  label: string;
  description?: string | undefined;
  error?: string | undefined;
  children: (control: ControlProps) => ReactNode;
}

export function Field({ label, description, error, children }: FieldProps) {
  const id = useId();
  const notes = [
    ...(description === undefined ? [] : [`${id}-about`]),
    ...(error === undefined ? [] : [`${id}-error`]),
  ];
  return (
    <div className="min-w-0 space-y-1">
      <label htmlFor={id} className="block text-xs font-medium text-muted">
        {label}
      </label>
      {description !== undefined && (
        <p id={`${id}-about`} className="text-xs text-muted wrap-anywhere">
          {description}
        </p>
      )}
      {children({
        id,
        "aria-invalid": error !== undefined,
        ...(notes.length === 0 ? {} : { "aria-describedby": notes.join(" ") }),
      })}
      {error !== undefined && (
        <p id={`${id}-error`} className="text-xs whitespace-pre-wrap text-danger wrap-anywhere">
          {error}
        </p>
      )}
    </div>
  );
}

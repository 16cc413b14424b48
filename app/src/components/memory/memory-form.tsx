/** The form of a memory. It shows errors at their fields, and submits a draft without errors. */
import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import { problemText } from "../../format.ts";
import { type DraftErrors, type DraftField, errorsOf, type MemoryDraft } from "../../memory/memory-draft.ts";
import { ErrorNote } from "../error-note.tsx";
import { type ControlProps, FIELD, Field } from "../field.tsx";

interface MemoryFormProps {
  draft: MemoryDraft;
  onDraft: (draft: MemoryDraft) => void;
  /** A new memory has a user and a key, too. */
  isNew: boolean;
  /** Types to suggest. */
  types: readonly string[];
  texts: { submit: string; working: string };
  /** Saves a draft without errors. Rejects if the server refuses it. */
  onSubmit: (draft: MemoryDraft) => Promise<unknown>;
  onCancel?: () => void;
}

export function MemoryForm({ draft, onDraft, isNew, types, texts, onSubmit, onCancel }: MemoryFormProps) {
  const form = useRef<HTMLFormElement>(null);
  const suggestions = useId();
  const [errors, setErrors] = useState<DraftErrors>({});
  const [failure, setFailure] = useState<unknown>(undefined);
  const [working, setWorking] = useState(false);

  useEffect(() => {
    if (Object.keys(errors).length > 0)
      form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [errors]);

  async function submit(event: FormEvent) {
    event.preventDefault();
    if (working) return;
    const found = errorsOf(draft, { isNew });
    setErrors(found);
    setFailure(undefined);
    if (Object.keys(found).length > 0) return;
    setWorking(true);
    try {
      await onSubmit(draft);
    } catch (error) {
      setFailure(error);
    }
    setWorking(false);
  }

  const field = (name: DraftField, control: ControlProps) => ({
    ...control,
    value: draft[name],
    onChange: ({ target }: { target: { value: string } }) => onDraft({ ...draft, [name]: target.value }),
    className: FIELD,
  });

  return (
    <form ref={form} noValidate onSubmit={(event) => void submit(event)} className="space-y-3">
      <Field label="Text" error={errors.content}>
        {(control) => <textarea rows={4} {...field("content", control)} aria-required={true} />}
      </Field>
      <div className="grid grid-cols-2 gap-3">
        <Field label="Type" error={errors.type}>
          {(control) => (
            <input
              {...field("type", control)}
              list={suggestions}
              placeholder="fact"
              maxLength={200}
              autoComplete="off"
              autoCapitalize="off"
            />
          )}
        </Field>
        <Field label="Importance, from 0 to 1" error={errors.significance}>
          {(control) => (
            <input
              {...field("significance", control)}
              inputMode="decimal"
              placeholder="0.5"
              autoComplete="off"
            />
          )}
        </Field>
      </div>
      <div className="grid gap-3 sm:grid-cols-2">
        <Field label="True from" error={errors.validFrom}>
          {(control) => <input {...field("validFrom", control)} type="datetime-local" step={1} />}
        </Field>
        <Field label="True until (optional)" error={errors.validTo}>
          {(control) => <input {...field("validTo", control)} type="datetime-local" step={1} />}
        </Field>
      </div>
      {isNew && (
        <div className="grid grid-cols-2 gap-3">
          <Field label="About the user (optional)" error={errors.userId}>
            {(control) => (
              <input
                {...field("userId", control)}
                maxLength={200}
                autoComplete="off"
                autoCapitalize="off"
                spellCheck={false}
              />
            )}
          </Field>
          <Field label="Key (optional)" error={errors.key}>
            {(control) => (
              <input
                {...field("key", control)}
                maxLength={200}
                autoComplete="off"
                autoCapitalize="off"
                spellCheck={false}
              />
            )}
          </Field>
        </div>
      )}
      <datalist id={suggestions}>
        {types.map((type) => (
          <option key={type} value={type} />
        ))}
      </datalist>
      {Object.keys(errors).length > 0 && <ErrorNote text="Not saved yet. See the marked fields." />}
      {failure !== undefined && <ErrorNote text={problemText(failure)} />}
      <div className="flex flex-wrap gap-2">
        {/* A disabled button would lose the focus. */}
        <button
          type="submit"
          aria-disabled={working}
          className="rounded-lg bg-accent px-4 py-2 text-sm font-medium text-on-accent aria-disabled:bg-line aria-disabled:text-muted"
        >
          {working ? texts.working : texts.submit}
        </button>
        {onCancel !== undefined && (
          <button
            type="button"
            onClick={onCancel}
            className="rounded-lg border border-line px-4 py-2 text-sm font-medium hover:bg-sunken"
          >
            Cancel
          </button>
        )}
      </div>
    </form>
  );
}

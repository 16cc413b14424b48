/** A form for a project or a repository, closed at first. The server checks its values, and each problem is at its field. */
import { type FormEvent, type ReactNode, useState } from "react";
import { DramatisClientError } from "../../../../src/client/index.ts";
import { problemText } from "../../format.ts";
import { ErrorNote } from "../error-note.tsx";
import { FIELD, Field } from "../field.tsx";

/** Returns the problem of a member of the request, by its JSON pointer. */
type ProblemAt = (pointer: string) => string | undefined;

interface ProjectFormProps {
  title: string;
  button: string;
  testId: string;
  /** The JSON pointers of the members that have a field. */
  pointers: readonly string[];
  /** Rejects if the server refuses the values. */
  onSubmit: (values: FormData) => Promise<void>;
  children: (problemAt: ProblemAt) => ReactNode;
}

export function ProjectForm({ title, button, testId, pointers, onSubmit, children }: ProjectFormProps) {
  const [working, setWorking] = useState(false);
  const [error, setError] = useState<unknown>(undefined);
  const issues = error instanceof DramatisClientError ? error.errors : [];
  const isAtFields = issues.length > 0 && issues.every(({ path }) => pointers.includes(path));

  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = event.currentTarget;
    setWorking(true);
    setError(undefined);
    try {
      await onSubmit(new FormData(form));
      form.reset();
    } catch (reason) {
      setError(reason);
    }
    setWorking(false);
  }

  return (
    <details data-testid={testId} className="rounded-xl border border-line bg-surface">
      <summary className="rounded-xl px-4 py-3 text-sm font-medium">{title}</summary>
      <form onSubmit={(event) => void submit(event)} className="space-y-3 border-t border-line p-4">
        {children((pointer) => issues.find(({ path }) => path === pointer)?.message)}
        {error !== undefined && !isAtFields && <ErrorNote text={problemText(error)} />}
        <button
          type="submit"
          disabled={working}
          className="rounded-lg bg-accent px-4 py-2 text-sm font-medium text-on-accent disabled:bg-line disabled:text-muted"
        >
          {button}
        </button>
      </form>
    </details>
  );
}

interface TextFieldProps {
  name: string;
  label: string;
  description?: string;
  error: string | undefined;
  isId?: boolean;
  required?: boolean;
  placeholder?: string;
}

export function TextField({ label, description, error, isId = false, ...input }: TextFieldProps) {
  return (
    <Field label={label} description={description} error={error}>
      {(control) => (
        <input
          {...control}
          {...input}
          maxLength={200}
          autoComplete="off"
          {...(isId ? { autoCapitalize: "off", spellCheck: false } : {})}
          className={isId ? `${FIELD} font-mono` : FIELD}
        />
      )}
    </Field>
  );
}

interface RepositoryFieldsProps {
  /** The JSON pointer of the repository. */
  at: string;
  problemAt: ProblemAt;
  required?: boolean;
}

/** The fields of a repository. `repositoryOf` reads them. */
export function RepositoryFields({ at, problemAt, required = true }: RepositoryFieldsProps) {
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      <TextField
        name="repo"
        label={required ? "Id of the repository" : "Id of the repository (optional)"}
        error={problemAt(`${at}/id`)}
        isId
        required={required}
      />
      <TextField
        name="branch"
        label="Default branch"
        error={problemAt(`${at}/defaultBranch`)}
        isId
        placeholder="main"
      />
    </div>
  );
}

/** Returns the JSON pointers of the members of a repository. */
export function repositoryPointers(at: string): string[] {
  return [`${at}/id`, `${at}/defaultBranch`];
}

export function repositoryOf(form: FormData): { id: string; defaultBranch?: string } {
  const branch = String(form.get("branch")).trim();
  return { id: String(form.get("repo")).trim(), ...(branch === "" ? {} : { defaultBranch: branch }) };
}

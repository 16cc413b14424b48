/** Forms for projects, repositories and their parts. The server checks its values, and each problem is at its field. */
import { type FormEvent, type ReactNode, useState } from "react";
import { DramatisClientError } from "../../../../src/client/index.ts";
import { problemText } from "../../format.ts";
import { ErrorNote } from "../error-note.tsx";
import { FIELD, Field } from "../field.tsx";
import { NewForm } from "../new-form.tsx";

/** Returns the problem of a member of the request, by its JSON pointer. */
type ProblemAt = (pointer: string) => string | undefined;

interface FormBodyProps {
  button: string;
  /** The JSON pointers of the members that have a field, or begin the pointers of its values. */
  pointers: readonly string[];
  /** After a success the fields have their first values again. */
  resets?: boolean;
  /** Rejects if the server refuses the values. */
  onSubmit: (values: FormData) => Promise<void>;
  children: (problemAt: ProblemAt) => ReactNode;
}

export function FormBody({ button, pointers, resets = false, onSubmit, children }: FormBodyProps) {
  const [working, setWorking] = useState(false);
  const [error, setError] = useState<unknown>(undefined);
  const issues = error instanceof DramatisClientError ? error.errors : [];
  const isAt = (path: string, pointer: string) => path === pointer || path.startsWith(`${pointer}/`);
  const isAtFields =
    issues.length > 0 && issues.every(({ path }) => pointers.some((pointer) => isAt(path, pointer)));

  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = event.currentTarget;
    setWorking(true);
    setError(undefined);
    try {
      await onSubmit(new FormData(form));
      if (resets) form.reset();
    } catch (reason) {
      setError(reason);
    }
    setWorking(false);
  }

  return (
    <form onSubmit={(event) => void submit(event)} className="space-y-3">
      {children((pointer) => issues.find(({ path }) => isAt(path, pointer))?.message)}
      {error !== undefined && !isAtFields && <ErrorNote text={problemText(error)} />}
      <button
        type="submit"
        disabled={working}
        className="rounded-lg bg-accent px-4 py-2 text-sm font-medium text-on-accent disabled:bg-line disabled:text-muted"
      >
        {button}
      </button>
    </form>
  );
}

interface ProjectFormProps extends FormBodyProps {
  /** The text of the button that opens the form. */
  title: string;
  testId: string;
  isMain?: boolean;
}

/** A form that is closed at first. */
export function ProjectForm({ title, testId, isMain = false, ...body }: ProjectFormProps) {
  return (
    <NewForm text={title} testId={testId} isMain={isMain}>
      <FormBody {...body} resets />
    </NewForm>
  );
}

interface TextFieldProps {
  name: string;
  label: string;
  description?: string | undefined;
  error: string | undefined;
  isId?: boolean;
  /** A whole number. */
  isCount?: boolean;
  required?: boolean;
  placeholder?: string;
  defaultValue?: string | undefined;
  maxLength?: number;
}

export function TextField({
  label,
  description,
  error,
  isId = false,
  isCount = false,
  ...input
}: TextFieldProps) {
  return (
    <Field label={label} description={description} error={error}>
      {(control) => (
        <input
          maxLength={200}
          {...control}
          {...input}
          autoComplete="off"
          {...(isCount ? { type: "number", min: 0, step: 1 } : {})}
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

/** Returns the repositories of a new project; an empty list if the fields are empty. */
export function repositoriesOf(form: FormData): ReturnType<typeof repositoryOf>[] {
  const repository = repositoryOf(form);
  return repository.id === "" && repository.defaultBranch === undefined ? [] : [repository];
}

export function repositoryOf(form: FormData): { id: string; defaultBranch?: string } {
  const branch = String(form.get("branch")).trim();
  return { id: String(form.get("repo")).trim(), ...(branch === "" ? {} : { defaultBranch: branch }) };
}

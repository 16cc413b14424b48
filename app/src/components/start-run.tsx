/** Starts a run of a workflow. */
import { type FormEvent, useState } from "react";
import { DramatisClientError } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { messageOf, problemText } from "../format.ts";
import { useWorkflowInput } from "../hooks/use-workflow-input.ts";
import { useWorkflowNames } from "../hooks/use-workflow-names.ts";
import { runPath } from "../route.ts";
import { navigate } from "../router.ts";
import { answerOf, errorsAt, FORM, type GateErrors, type GateTexts } from "../runs/gate-form.ts";
import { ErrorNote } from "./error-note.tsx";
import { FIELD, Field } from "./field.tsx";
import { GateFields } from "./gate-field.tsx";
import { NewForm } from "./new-form.tsx";

/** The choice of a workflow by its name, such as an older version. No name has its form. */
const OTHER = "?";

export function StartRun() {
  const [workflow, setWorkflow] = useState("");
  const [name, setName] = useState("");
  const [text, setText] = useState("{}");
  const [starting, setStarting] = useState(false);
  const [error, setError] = useState<string | undefined>(undefined);
  const [isOpen, setOpen] = useState(false);
  const names = useWorkflowNames(isOpen);
  const fields = useWorkflowInput(workflow.trim(), names);
  const [texts, setTexts] = useState<GateTexts>({});
  const [errors, setErrors] = useState<GateErrors>(new Map());
  const [isJson, setJson] = useState(false);
  const form = isJson ? undefined : fields;
  const [isOther, setOther] = useState(false);

  async function start(event: FormEvent) {
    event.preventDefault();
    setError(undefined);
    setErrors(new Map());
    const made = form && answerOf(form, texts);
    if (made !== undefined && "errors" in made) return setErrors(made.errors);
    setStarting(true);
    try {
      // SAFETY: the fields are members of an object.
      const input = made === undefined ? inputOf(text) : (made.answer as Input);
      const { id } = await client.runs.start({
        ...{ workflow: workflow.trim(), input },
        ...(name.trim() === "" ? {} : { name: name.trim() }),
      });
      navigate(runPath(id));
    } catch (reason) {
      setStarting(false);
      const issues = reason instanceof DramatisClientError ? (reason.errors ?? []) : [];
      if (form !== undefined && issues.length > 0) setErrors(errorsAt(form, issues, "/input"));
      else setError(problemText(reason));
    }
  }

  return (
    <NewForm text="New run" testId="start-run" isMain isOpen={isOpen} onToggle={setOpen}>
      <form onSubmit={(event) => void start(event)} className="space-y-3">
        <Field label="Workflow">
          {(control) =>
            names.length > 0 && !isOther ? (
              <select
                {...control}
                value={workflow}
                onChange={({ target: { value } }) => {
                  setOther(value === OTHER);
                  setWorkflow(value === OTHER ? "" : value);
                }}
                required
                className={FIELD}
              >
                <option value="">Choose a workflow</option>
                {names.map((name) => (
                  <option key={name}>{name}</option>
                ))}
                <option value={OTHER}>Another workflow…</option>
              </select>
            ) : (
              <input
                {...control}
                value={workflow}
                onChange={(event) => setWorkflow(event.target.value)}
                required
                placeholder="library/id"
                autoComplete="off"
                autoCapitalize="off"
                spellCheck={false}
                className={`${FIELD} font-mono`}
              />
            )
          }
        </Field>
        <Field label="Name (optional)">
          {(control) => (
            <input
              {...control}
              value={name}
              onChange={(event) => setName(event.target.value)}
              maxLength={120}
              autoComplete="off"
              className={FIELD}
            />
          )}
        </Field>
        {workflow === "" && names.length > 0 && !isOther ? (
          <p className="text-sm text-muted">Choose a workflow to see the fields of its input.</p>
        ) : form === undefined ? (
          <Field label="Input (a JSON object)">
            {(control) => (
              <textarea
                {...control}
                value={text}
                onChange={(event) => setText(event.target.value)}
                rows={4}
                spellCheck={false}
                className={`${FIELD} font-mono`}
              />
            )}
          </Field>
        ) : (
          <GateFields fields={form} errors={errors} texts={texts} onType={setTexts} />
        )}
        {form === undefined && errors.has(FORM) && <ErrorNote text={errors.get(FORM) ?? ""} />}
        {fields !== undefined && (
          <button
            type="button"
            onClick={() => setJson(!isJson)}
            className="block text-xs text-accent hover:underline pointer-coarse:py-2"
          >
            {isJson ? "Use the form" : "Write JSON"}
          </button>
        )}
        {error !== undefined && <ErrorNote text={error} />}
        <button
          type="submit"
          disabled={starting}
          className="rounded-lg bg-accent px-4 py-2 text-sm font-medium text-on-accent disabled:bg-line disabled:text-muted"
        >
          {starting ? "Starting…" : "Start run"}
        </button>
      </form>
    </NewForm>
  );
}

type Input = NonNullable<Parameters<typeof client.runs.start>[0]["input"]>;

/** Parses the input. The message of an error names the fix. */
function inputOf(text: string): Input {
  let value: unknown;
  try {
    value = JSON.parse(text.trim() === "" ? "{}" : text);
  } catch (error) {
    throw new Error(`The input is not JSON: ${messageOf(error)}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Error('The input must be a JSON object, such as {"documents": []}.');
  // SAFETY: parsed JSON, and an object.
  return value as Input;
}

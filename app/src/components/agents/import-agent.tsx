/** Creates an agent from the file of an export. */
import { useState } from "react";
import { client } from "../../client.ts";
import { problemText } from "../../format.ts";
import { agentPath } from "../../route.ts";
import { navigate } from "../../router.ts";
import { ErrorNote } from "../error-note.tsx";
import { FIELD, Field } from "../field.tsx";
import { NewForm } from "../new-form.tsx";

/** `onImported` is called when there is a new agent. */
export function ImportAgent({ onImported }: { onImported: () => void }) {
  const [working, setWorking] = useState(false);
  const [error, setError] = useState<unknown>(undefined);

  async function take(file: File | undefined) {
    if (file === undefined) return;
    setWorking(true);
    setError(undefined);
    try {
      const { id } = await client.agents.import(file);
      onImported();
      navigate(agentPath(id));
    } catch (reason) {
      setError(reason);
      setWorking(false);
    }
  }

  return (
    <NewForm text="Import an agent" testId="import-agent">
      <div className="space-y-3">
        <Field
          label="File of an export"
          description="The new agent has the identity and the memories of the exported agent. Its id is new."
        >
          {(control) => (
            <input
              {...control}
              type="file"
              accept=".jsonl,.ndjson"
              disabled={working}
              onChange={({ target }) => {
                const [file] = target.files ?? [];
                // The same file can be chosen again after an error.
                target.value = "";
                void take(file);
              }}
              className={FIELD}
            />
          )}
        </Field>
        {working && (
          <p role="status" className="text-sm text-muted">
            Importing…
          </p>
        )}
        {error !== undefined && <ErrorNote text={problemText(error)} />}
      </div>
    </NewForm>
  );
}

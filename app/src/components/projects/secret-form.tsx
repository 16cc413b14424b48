/** The form of a secret: a new one, or a new value of a secret. The field of the value hides it and begins empty. */
import type { ProjectSecretView } from "../../../../src/protocol/project-secrets.ts";
import { client } from "../../client.ts";
import { listOf } from "../../projects/settings-draft.ts";
import { FIELD, Field } from "../field.tsx";
import { FormBody, TextField } from "./project-form.tsx";

interface SecretFormProps {
  project: string;
  /** The secret that gets another value. */
  secret?: ProjectSecretView;
  /** Gets the name of the secret. */
  onSaved: (id: string) => void;
}

const PREFIXES = [
  ["Bearer ", "Bearer, and the value"],
  ["Basic ", "Basic, and the value"],
  ["", "The value alone"],
] as const;

export function SecretForm({ project, secret, onSaved }: SecretFormProps) {
  const { prefix = "" } = secret ?? { prefix: "Bearer " };
  const others = PREFIXES.some(([known]) => known === prefix) ? [] : [[prefix, `${prefix}…`] as const];

  async function save(form: FormData) {
    const text = (name: string) => String(form.get(name)).trim();
    const chosen = String(form.get("prefix"));
    const id = secret?.id ?? text("id");
    await client.projects.putSecret(project, id, {
      value: text("value"),
      hosts: listOf(text("hosts")),
      ...(text("header") === "" ? {} : { header: text("header") }),
      ...(chosen === "" ? {} : { prefix: chosen }),
    });
    onSaved(id);
  }

  return (
    <FormBody
      button={secret === undefined ? "Save secret" : `Replace ${secret.id}`}
      pointers={["/value", "/hosts", "/header"]}
      resets
      onSubmit={save}
    >
      {(problemAt) => (
        <>
          {secret === undefined && (
            <TextField
              name="id"
              label="Name"
              description="Letters, digits, hyphens and underscores. A name that exists gets the new value."
              error={undefined}
              isId
              required
            />
          )}
          <Field label="Value" error={problemAt("/value")}>
            {(control) => (
              <input
                {...control}
                type="password"
                name="value"
                required
                maxLength={8_000}
                autoComplete="new-password"
                spellCheck={false}
                className={`${FIELD} font-mono`}
              />
            )}
          </Field>
          <TextField
            name="hosts"
            label="Hosts"
            description="Only these hosts get the secret. Write commas between hosts."
            error={problemAt("/hosts")}
            placeholder="api.example.com"
            defaultValue={secret?.hosts.join(", ")}
            maxLength={6_000}
            isId
            required
          />
          <div className="grid gap-3 sm:grid-cols-2">
            <TextField
              name="header"
              label="Header"
              error={problemAt("/header")}
              defaultValue={secret?.header ?? "authorization"}
              isId
            />
            <Field label="Content of the header">
              {(control) => (
                <select {...control} name="prefix" defaultValue={prefix} className={FIELD}>
                  {[...others, ...PREFIXES].map(([value, text]) => (
                    <option key={value} value={value}>
                      {text}
                    </option>
                  ))}
                </select>
              )}
            </Field>
          </div>
        </>
      )}
    </FormBody>
  );
}

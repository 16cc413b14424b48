/** The secrets of a project, without their values. Operators set, replace and delete them. */
import { useCallback, useState } from "react";
import { DramatisClientError } from "../../../../src/client/index.ts";
import type { ProjectSecretView } from "../../../../src/protocol/project-secrets.ts";
import { client } from "../../client.ts";
import { messageOf, momentOf } from "../../format.ts";
import { useHasRole } from "../../hooks/use-me.ts";
import { useNote } from "../../hooks/use-note.tsx";
import { useResource } from "../../hooks/use-resource.ts";
import { ConfirmedButton } from "../confirmed-button.tsx";
import { ErrorNote } from "../error-note.tsx";
import { Loading } from "../loading.tsx";
import { NewForm } from "../new-form.tsx";
import { SecretForm } from "./secret-form.tsx";

export function SecretsView({ project }: { project: string }) {
  const isOperator = useHasRole("operator");
  const [isOpen, setOpen] = useState(false);
  const { note, say } = useNote();
  const load = useCallback((signal: AbortSignal) => client.projects.secrets(project, { signal }), [project]);
  const { value, error, reload } = useResource(load);
  const secrets = value?.secrets;
  const changed = (text: string) => {
    say(text);
    reload();
  };
  if (error instanceof DramatisClientError && error.status === 403)
    return (
      <p className="px-1 py-2 text-sm text-muted">
        Authors, operators and administrators see the names of secrets.
      </p>
    );
  return (
    <>
      <p className="px-1 text-sm text-muted">
        Requests of this project carry a secret to its hosts. After you save a value, no page and no person
        can read it.
      </p>
      {value?.problem !== undefined && <ErrorNote text={value.problem} />}
      {isOperator && value !== undefined && value.problem === undefined && (
        <NewForm text="New secret" testId="new-secret" isMain isOpen={isOpen} onToggle={setOpen}>
          <SecretForm
            project={project}
            onSaved={(id) => {
              setOpen(false);
              changed(`Saved the secret ${id}.`);
            }}
          />
        </NewForm>
      )}
      {note}
      {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
      {secrets === undefined && error === undefined && <Loading label="Loading the secrets" />}
      {secrets?.length === 0 && (
        <p className="px-1 py-2 text-sm text-muted">
          No secrets yet. {isOperator ? "" : "Operators and administrators set secrets."}
        </p>
      )}
      {secrets !== undefined && secrets.length > 0 && (
        <ul
          aria-label="Secrets"
          className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-surface"
        >
          {secrets.map((secret) => (
            <SecretItem
              key={`${secret.id} ${secret.updatedAt}`}
              project={project}
              secret={secret}
              onChanged={changed}
            />
          ))}
        </ul>
      )}
    </>
  );
}

interface SecretItemProps {
  project: string;
  secret: ProjectSecretView;
  /** Gets the text of the change. */
  onChanged: (text: string) => void;
}

function SecretItem({ project, secret, onChanged }: SecretItemProps) {
  const { id, hosts, header, prefix = "", updatedAt } = secret;
  const isOperator = useHasRole("operator");
  const [isOpen, setOpen] = useState(false);
  const [error, setError] = useState<unknown>(undefined);
  return (
    <li data-testid="secret" data-secret={id} className="space-y-3 px-4 py-3">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <div className="min-w-0 flex-1 basis-48 space-y-0.5">
          <p className="font-mono text-sm font-medium wrap-anywhere">{id}</p>
          <p className="text-xs text-muted wrap-anywhere">
            <span className="font-mono">
              {header}: {prefix}
              <span aria-hidden="true">••••••••</span>
            </span>{" "}
            to {hosts.join(", ")} · set <time dateTime={updatedAt}>{momentOf(updatedAt, new Date())}</time>
          </p>
        </div>
        {isOperator && (
          <div className="flex gap-2">
            <button
              type="button"
              aria-expanded={isOpen}
              onClick={() => setOpen(!isOpen)}
              className="rounded-lg border border-line px-3 py-1.5 text-sm font-medium hover:border-accent"
            >
              {isOpen ? "Cancel" : "Replace"}
              <span className="sr-only"> {id}</span>
            </button>
            <ConfirmedButton
              texts={{ idle: "Delete", asking: `Delete ${id}?`, working: "Deleting…" }}
              needsSecond
              className="text-danger wrap-anywhere"
              testId="delete-secret"
              onConfirm={async () => {
                await client.projects.deleteSecret(project, id);
                onChanged(`Deleted the secret ${id}.`);
              }}
              onError={setError}
            />
          </div>
        )}
      </div>
      {isOpen && (
        <SecretForm
          project={project}
          secret={secret}
          onSaved={() => onChanged(`Replaced the secret ${id}.`)}
        />
      )}
      {error !== undefined && <ErrorNote text={messageOf(error)} />}
    </li>
  );
}

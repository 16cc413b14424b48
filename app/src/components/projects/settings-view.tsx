/** The settings of a project. Operators change them, other people read them. Authors delete the project. */
import { type ReactNode, useId, useState } from "react";
import type { Project } from "../../../../src/client/index.ts";
import { PROVIDERS } from "../../../../src/model/profile.ts";
import { client } from "../../client.ts";
import { useHasRole } from "../../hooks/use-me.ts";
import { useNote } from "../../hooks/use-note.tsx";
import { changeOf, draftOf, type SettingsDraft } from "../../projects/settings-draft.ts";
import { PROJECTS_PATH } from "../../route.ts";
import { navigate } from "../../router.ts";
import { DeleteAction } from "../delete-action.tsx";
import { Facts } from "../facts.tsx";
import { FormBody, TextField } from "./project-form.tsx";

interface SettingsViewProps {
  project: Project;
  onChanged: () => void;
}

export function SettingsView({ project, onChanged }: SettingsViewProps) {
  const isOperator = useHasRole("operator");
  const isAuthor = useHasRole("author");
  const { note, say } = useNote();
  const { budget, spent } = project;
  const used =
    budget === undefined
      ? ""
      : `${(spent?.tokens ?? 0).toLocaleString()} of ${budget.tokens.toLocaleString()} tokens are used.`;
  return (
    <>
      <p className="px-1 text-sm text-muted">
        The settings apply to all work of the project. An empty setting allows everything.
        {isOperator ? "" : " Operators and administrators change them."}
      </p>
      {isOperator ? (
        <SettingsForm
          // The saved values are the first values of the next change.
          key={JSON.stringify(draftOf(project))}
          project={project}
          used={used}
          onSaved={(text) => {
            say(text);
            onChanged();
          }}
        />
      ) : (
        <SettingsFacts project={project} used={used} />
      )}
      {note}
      {isAuthor && (
        <section aria-label="Delete the project" className="border-t border-line pt-4">
          <DeleteAction
            kind="project"
            asking={`Delete ${project.id} for good?`}
            note="Deletes its repositories and artifacts. Agents and conversations of the project stay, and lose these files."
            onDelete={async () => {
              await client.projects.delete(project.id);
              navigate(PROJECTS_PATH);
            }}
          />
        </section>
      )}
    </>
  );
}

interface SettingsFormProps {
  project: Project;
  /** The use of the budget; empty without a budget. */
  used: string;
  onSaved: (text: string) => void;
}

const POINTERS = [
  ...["/name", "/modelProfileId", "/allowedModelProviders", "/allowedMcpServers"],
  ...["/limits/maxConcurrentRuns", "/limits/maxModelCallsPerHour", "/budget/tokens"],
];

function SettingsForm({ project, used, onSaved }: SettingsFormProps) {
  const draft = draftOf(project);
  const [limitsServers, setLimitsServers] = useState(draft.limitsServers);

  async function save(form: FormData) {
    const change = changeOf(draft, draftFrom(form, limitsServers));
    if (change === undefined) return onSaved("Nothing has changed.");
    await client.projects.update(project.id, change);
    onSaved("Saved the settings.");
  }

  return (
    <section aria-label="Settings" className="rounded-xl border border-line bg-surface p-4">
      <FormBody button="Save settings" pointers={POINTERS} onSubmit={save}>
        {(problemAt) => (
          <>
            <TextField name="name" label="Name" error={problemAt("/name")} defaultValue={draft.name} />
            <TextField
              name="modelProfileId"
              label="Model profile"
              description="For agents without a model profile, in new conversations."
              error={problemAt("/modelProfileId")}
              defaultValue={draft.modelProfileId}
              placeholder="library/id"
              maxLength={300}
              isId
            />
            <Group legend="Allowed providers of models" note="Without a choice, all providers are allowed.">
              {PROVIDERS.map((provider) => (
                <Checkbox
                  key={provider}
                  name="providers"
                  value={provider}
                  text={provider}
                  isChecked={draft.providers.includes(provider)}
                />
              ))}
            </Group>
            <Group legend="MCP servers">
              <Checkbox
                name="limitsServers"
                value="yes"
                text="Allow only some servers"
                isChecked={limitsServers}
                onChange={setLimitsServers}
              />
            </Group>
            {limitsServers && (
              <TextField
                name="servers"
                label="Allowed MCP servers"
                description="Ids with commas between them. An empty field allows no server."
                error={problemAt("/allowedMcpServers")}
                defaultValue={draft.servers}
                maxLength={7_000}
                isId
              />
            )}
            <div className="grid gap-3 sm:grid-cols-2">
              <TextField
                name="maxConcurrentRuns"
                label="Runs at the same time"
                error={problemAt("/limits/maxConcurrentRuns")}
                defaultValue={draft.maxConcurrentRuns}
                placeholder="No limit"
                isCount
              />
              <TextField
                name="maxModelCallsPerHour"
                label="Model calls in an hour"
                error={problemAt("/limits/maxModelCallsPerHour")}
                defaultValue={draft.maxModelCallsPerHour}
                placeholder="No limit"
                isCount
              />
              <TextField
                name="tokens"
                label="Budget of tokens"
                description={used === "" ? undefined : used}
                error={problemAt("/budget/tokens")}
                defaultValue={draft.tokens}
                placeholder="No limit"
                isCount
              />
            </div>
          </>
        )}
      </FormBody>
    </section>
  );
}

/** Reads the fields of the form. */
function draftFrom(form: FormData, limitsServers: boolean): SettingsDraft {
  const text = (name: string) => String(form.get(name) ?? "");
  return {
    name: text("name"),
    modelProfileId: text("modelProfileId"),
    providers: PROVIDERS.filter((provider) => form.getAll("providers").includes(provider)),
    limitsServers,
    servers: text("servers"),
    maxConcurrentRuns: text("maxConcurrentRuns"),
    maxModelCallsPerHour: text("maxModelCallsPerHour"),
    tokens: text("tokens"),
  };
}

interface GroupProps {
  legend: string;
  note?: string;
  children: ReactNode;
}

function Group({ legend, note, children }: GroupProps) {
  const id = useId();
  return (
    <fieldset aria-describedby={note === undefined ? undefined : id} className="min-w-0 space-y-1">
      <legend className="text-xs font-medium text-muted">{legend}</legend>
      {note !== undefined && (
        <p id={id} className="text-xs text-muted">
          {note}
        </p>
      )}
      <div className="flex flex-wrap gap-x-5 gap-y-1">{children}</div>
    </fieldset>
  );
}

interface CheckboxProps {
  name: string;
  value: string;
  text: string;
  isChecked: boolean;
  onChange?: (isChecked: boolean) => void;
}

function Checkbox({ name, value, text, isChecked, onChange }: CheckboxProps) {
  return (
    <label className="flex cursor-pointer items-center gap-2 py-1 text-sm pointer-coarse:py-2">
      <input
        type="checkbox"
        name={name}
        value={value}
        defaultChecked={isChecked}
        onChange={onChange && (({ target }) => onChange(target.checked))}
        className="size-4 accent-accent"
      />
      {text}
    </label>
  );
}

function SettingsFacts({ project, used }: { project: Project; used: string }) {
  const { name, modelProfileId, allowedModelProviders, allowedMcpServers, limits } = project;
  return (
    <section aria-label="Settings" className="rounded-xl border border-line bg-surface p-4">
      <Facts
        facts={[
          ["Name", name ?? "None"],
          ["Model profile", modelProfileId ?? "None"],
          ["Allowed providers", allowedModelProviders?.join(", ") ?? "All"],
          [
            "Allowed MCP servers",
            allowedMcpServers === undefined ? "All" : allowedMcpServers.join(", ") || "None",
          ],
          ["Runs at the same time", limits?.maxConcurrentRuns?.toLocaleString() ?? "No limit"],
          ["Model calls in an hour", limits?.maxModelCallsPerHour?.toLocaleString() ?? "No limit"],
          ["Budget of tokens", used === "" ? "No limit" : used],
        ]}
      />
    </section>
  );
}

/** Fetches from a repository on another git server, or pushes to it. The server does not keep the address. */
import { useState } from "react";
import { client } from "../../client.ts";
import { shortOid } from "../../files/commits.ts";
import { count } from "../../format.ts";
import { useNote } from "../../hooks/use-note.tsx";
import { projectPath } from "../../route.ts";
import { FIELD, Field } from "../field.tsx";
import { Link } from "../link.tsx";
import { FormBody, TextField } from "./project-form.tsx";

interface RemoteFormProps {
  project: string;
  repo: string;
  defaultBranch: string;
  /** The branches of the repository may have moved. */
  onFetched: () => void;
}

type Direction = "fetch" | "push";

export function RemoteForm({ project, repo, defaultBranch, onFetched }: RemoteFormProps) {
  const [direction, setDirection] = useState<Direction>("fetch");
  const { note, say } = useNote();

  async function go(form: FormData) {
    const text = (name: string) => String(form.get(name) ?? "").trim();
    const given = (name: string) => (text(name) === "" ? {} : { [name]: text(name) });
    const at = { url: text("url"), ...given("branch") };
    if (direction === "fetch") {
      const { branches } = await client.projects.fetch(project, repo, at);
      say(`Fetched. The repository has ${count(branches.length, "branch", "branches")}.`);
      onFetched();
    } else {
      const { branch, oid } = await client.projects.push(project, repo, { ...at, ...given("to") });
      say(`Pushed. The branch ${branch} of the other server is at ${shortOid(oid)}.`);
    }
  }

  return (
    <div className="space-y-2">
      <FormBody
        button={direction === "fetch" ? "Fetch" : "Push"}
        pointers={["/url", "/branch", "/to"]}
        onSubmit={go}
      >
        {(problemAt) => (
          <>
            <Field label="Direction">
              {(control) => (
                <select
                  {...control}
                  value={direction}
                  // SAFETY: the options are the directions.
                  onChange={({ target }) => setDirection(target.value as Direction)}
                  className={FIELD}
                >
                  <option value="fetch">Fetch from the other server</option>
                  <option value="push">Push to the other server</option>
                </select>
              )}
            </Field>
            <TextField
              name="url"
              label="Address of the other repository"
              error={problemAt("/url")}
              placeholder="https://github.com/OWNER/web.git"
              maxLength={2_000}
              isId
              required
            />
            <div className="grid gap-3 sm:grid-cols-2">
              <TextField
                name="branch"
                label="Branch (optional)"
                error={problemAt("/branch")}
                placeholder={direction === "fetch" ? "All branches and tags" : defaultBranch}
                isId
              />
              {direction === "push" && (
                <TextField
                  name="to"
                  label="Branch of the other server (optional)"
                  error={problemAt("/to")}
                  placeholder="The same name"
                  isId
                />
              )}
            </div>
            <p className="text-xs text-muted">
              Ask your deployer to list the host in DRAMATIS_HTTP_HOSTS. A private repository needs a{" "}
              <Link to={projectPath(project, "secrets")} className="text-accent underline">
                secret of the project
              </Link>
              . A branch moves only forward.
            </p>
          </>
        )}
      </FormBody>
      {note}
    </div>
  );
}

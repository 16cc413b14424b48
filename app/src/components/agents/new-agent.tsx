/** The form of a new agent with instructions of its own. For authors. */
import { callApi, withJson } from "../../api.ts";
import { agentPath } from "../../route.ts";
import { navigate } from "../../router.ts";
import { FIELD, Field } from "../field.tsx";
import { ProjectForm, TextField } from "../projects/project-form.tsx";

/** `onCreated` is called when there is a new agent. */
export function NewAgent({ onCreated }: { onCreated: () => void }) {
  async function create(form: FormData) {
    const text = (name: string) => String(form.get(name)).trim();
    const persona = {
      ...(text("name") === "" ? {} : { name: text("name") }),
      identity: { systemPrompt: text("instructions") },
    };
    const { id } = await callApi<{ id: string }>("agents", withJson("POST", { id: text("id"), persona }));
    onCreated();
    navigate(agentPath(id));
  }

  return (
    <ProjectForm
      title="New agent"
      button="Create agent"
      testId="new-agent"
      isMain
      pointers={["/id", "/persona/name", "/persona/identity/systemPrompt"]}
      onSubmit={create}
    >
      {(problemAt) => (
        <>
          <div className="grid gap-3 sm:grid-cols-2">
            <TextField
              name="id"
              label="Id"
              error={problemAt("/id")}
              placeholder="travel-guide"
              isId
              required
            />
            <TextField name="name" label="Name (optional)" error={problemAt("/persona/name")} />
          </div>
          <Field
            label="Instructions"
            description="The agent gets these instructions with each message. Tools and a model profile come from a library."
            error={problemAt("/persona/identity/systemPrompt")}
          >
            {(control) => (
              <textarea
                {...control}
                name="instructions"
                rows={4}
                required
                maxLength={50_000}
                className={FIELD}
              />
            )}
          </Field>
        </>
      )}
    </ProjectForm>
  );
}

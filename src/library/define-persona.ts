/** The builder of personas. */
import type { HookName, HookTarget, Persona } from "../protocol/definitions.ts";
import { defined } from "../shared/defined.ts";
import { validate } from "../shared/validation.ts";
import { HOOKS } from "./hook-forms.ts";
import { personaSchema } from "./schemas.ts";
import { type DefinedPersona, isWorkflow, type Workflow } from "./tasks/built.ts";
import { checkedId, withId } from "./tool-definition.ts";

/** A hook in code: a workflow may stand in it itself. */
export type HookInCode = HookTarget | { workflow: Workflow };

/** The second argument of `definePersona`. */
export interface PersonaOptions extends Omit<Persona, "memory"> {
  memory?: Omit<NonNullable<Persona["memory"]>, HookName> & { [Name in HookName]?: HookInCode };
}

/**
 * Defines a persona. Throws `INVALID_INPUT`.
 * @example definePersona("guide", { identity: { systemPrompt: "You help travellers." }, tools: { toolIds: ["weather"] } });
 */
export function definePersona(id: string, persona: PersonaOptions): DefinedPersona {
  const workflows = HOOKS.flatMap((name) => workflowIn(persona?.memory?.[name]) ?? []);
  const definition = validate(personaSchema, withReferences(persona), "", `Persona "${id}"`);
  return {
    ...withId(checkedId("persona", id), definition),
    ...(workflows.length === 0 ? {} : { workflows: [...new Set(workflows)] }),
  };
}

function workflowIn(hook: HookInCode | undefined): Workflow | undefined {
  if (typeof hook !== "object" || hook === null || !("workflow" in hook)) return undefined;
  return isWorkflow(hook.workflow) ? hook.workflow : undefined;
}

/** Returns the persona with the ids of its workflows in their places. */
function withReferences(persona: PersonaOptions): object {
  const { memory } = { ...persona };
  if (typeof memory !== "object" || memory === null) return persona;
  const hooks = HOOKS.map((name) => {
    const hook = memory[name];
    const workflow = workflowIn(hook);
    return [name, workflow === undefined ? hook : { ...hook, workflow: workflow.id }] as const;
  });
  return { ...persona, memory: { ...memory, ...defined(Object.fromEntries(hooks)) } };
}

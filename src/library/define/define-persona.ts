import type { HookName, HookTarget, Persona } from "../../protocol/definitions.ts";
import { defined } from "../../shared/defined.ts";
import { invalid } from "../../shared/errors.ts";
import { validate } from "../../shared/validation.ts";
import { HOOKS } from "../hooks/hook-forms.ts";
import { settingsWithoutScope } from "../memory/scope.ts";
import { personaSchema } from "../personas/persona-schema.ts";
import { type DefinedPersona, isWorkflow, type Workflow } from "../tasks/built.ts";
import { checkedId, withId } from "../tools/tool-definition.ts";

/** A hook in code. It may contain a workflow instead of a reference. */
export type HookInCode = HookTarget | { workflow: Workflow };

/** The second argument of `definePersona`. Memory settings need a `scope` (MEMSET-1). */
export interface PersonaOptions extends Omit<Persona, "memory"> {
  memory?: Omit<NonNullable<Persona["memory"]>, HookName> & { [Name in HookName]?: HookInCode };
}

/**
 * Defines a persona. Throws `INVALID_INPUT`.
 * @example definePersona("guide", { identity: { systemPrompt: "You help travellers." }, tools: { toolIds: ["weather"] } });
 */
export function definePersona(id: string, persona: PersonaOptions): DefinedPersona {
  return personaOf(id, persona, `Persona "${id}"`);
}

/** As `definePersona`. `what` names the persona in errors, as its author knows it. */
export function personaOf(id: string, persona: PersonaOptions, what: string): DefinedPersona {
  const workflows = HOOKS.flatMap((name) => workflowIn(persona?.memory?.[name]) ?? []);
  const definition = validate(personaSchema, withReferences(persona), "", what);
  checkScope(what, definition);
  return {
    ...withId(checkedId("persona", id), definition),
    ...(workflows.length === 0 ? {} : { workflows: [...new Set(workflows)] }),
  };
}

/** Throws `INVALID_INPUT` for a persona that uses memory without a scope (MEMSET-1). */
function checkScope(what: string, { memory }: Persona): void {
  const [setting] = settingsWithoutScope(memory);
  if (setting === undefined) return;
  const message = `\`memory.${setting}\` uses the agent's memory, so add \`scope\` beside it. "user" separates the memories of users. "agent" shares memories among all users. "conversation" keeps memories within their conversation.`;
  throw invalid(`${what}: /memory/scope: ${message}`, {
    errors: [{ path: "/memory/scope", message }],
  });
}

function workflowIn(hook: HookInCode | undefined): Workflow | undefined {
  if (typeof hook !== "object" || hook === null || !("workflow" in hook)) return undefined;
  return isWorkflow(hook.workflow) ? hook.workflow : undefined;
}

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

/**
 * Checks of a library in code.
 *
 * LIBCHECK-1  The error for a wrong reference names the definition, the place, the given id, and the existing ids. The most similar id comes
 *             first.
 */
import { z } from "zod";
import type { ModelProfile } from "../../model/profile.ts";
import type { HookTarget, Persona, Skill } from "../../protocol/definitions.ts";
import type { InlineAction } from "../../protocol/task-definition.ts";
import { invalid } from "../../shared/errors.ts";
import type { DefinitionReference } from "../../shared/identifiers.ts";
import { listIds } from "../../shared/known-ids.ts";
import { mcpReference } from "../definitions/mcp-reference.ts";
import { placedNow } from "../definitions/placed.ts";
import { parseReference } from "../definitions/reference.ts";
import { isInlineSkill } from "../definitions/version-chain.ts";
import { checkHookFit, checkHookTask } from "../hooks/hook-fit.ts";
import { HOOKS, hookReference, OTHER_HOOK } from "../hooks/hook-forms.ts";
import type { HookUse } from "../hooks/hook-inputs.ts";
import { checkSkills, skillId, skillSchema } from "../skills/skill.ts";
import { type LibraryAction, madeAs, type Task, type Tool, type Workflow } from "../tasks/built.ts";
import { refersTo } from "../tasks/kinds.ts";
import { isReference } from "../tasks/steps-schema.ts";
import { workflowTarget } from "../tools/workflow-tool.ts";
import { checkNesting } from "../workflows/nesting.ts";

interface Identified {
  id: string;
}

interface Contents {
  id: string;
  personas: readonly (Identified & { definition: Persona })[];
  tools: readonly Pick<Tool, "id" | "definition">[];
  modelProfiles: readonly (Identified & { definition: ModelProfile })[];
  tasks: readonly Task[];
  actions: readonly LibraryAction[];
  prompts: readonly Identified[];
  workflows: readonly Workflow[];
  skills: readonly Skill[];
}

/** The second argument of `defineLibrary`. Untyped code may pass invalid values. */
export const contentsSchema = z.strictObject({
  personas: listMadeWith("definePersona", ["id", "definition"]),
  tools: listMadeWith("defineTool", ["id", "definition", "run"]),
  modelProfiles: listMadeWith("defineModelProfile", ["id", "definition"]),
  tasks: listMadeAs("task", "defineTask"),
  actions: listMadeAs("action", "defineAction"),
  prompts: listMadeWith("definePrompt", ["id", "definition"]),
  workflows: listMadeAs("workflow", "defineWorkflow"),
  skills: z.array(skillSchema, "Must be an array.").optional(),
});

function listMadeWith(maker: string, fields: string[]) {
  const isMade = (value: unknown) =>
    typeof value === "object" && value !== null && fields.every((field) => field in value);
  return listOf(isMade, maker);
}

function listMadeAs(what: string, maker: string) {
  return listOf((value: unknown) => madeAs(value) === what, maker);
}

function listOf(isMade: (value: unknown) => boolean, maker: string) {
  return z.array(z.custom(isMade, `Make it with ${maker}(…).`), "Must be an array.").optional();
}

/** Throws `INVALID_INPUT` for duplicate ids, and for a reference to a definition that the library does not have. */
export function checkLibrary(library: Contents): void {
  const { personas, tools, modelProfiles, tasks, actions, prompts, workflows } = library;
  const skills = library.skills.map((skill) => ({ id: skillId(skill) }));
  for (const skill of library.skills)
    placedNow(`Library "${library.id}", skill "${skillId(skill)}"`, () => checkSkills([skill]));
  for (const [kind, definitions] of [
    ["persona", personas],
    ["tool", tools],
    ["tool or task", tasks.length === 0 ? [] : [...tools, ...tasks]],
    ["model profile", modelProfiles],
    ["action", actions],
    ["prompt", prompts],
    ["workflow", workflows],
    ["skill", skills],
  ] as const) {
    refuseDuplicates(library.id, kind, definitions);
  }
  const profile = { kind: "model profile", known: modelProfiles };
  const code = { kind: "task", known: [...tasks, ...tools] };
  const tool = { kind: "tool", known: tools };
  const workflow = { kind: "workflow", known: workflows };
  const hookTask = { ...code, other: { known: workflows, fix: OTHER_HOOK.workflow } };
  const hookWorkflow = { ...workflow, other: { known: code.known, fix: OTHER_HOOK.task } };
  const check = (origin: string, at: string, reference: DefinitionReference, target: Target) =>
    checkReference(library.id, `${origin}, ${at}`, reference, target);
  for (const { id, definition } of personas) {
    const { modelProfileId } = definition.identity;
    for (const [index, reference] of (definition.tools?.toolIds ?? []).entries())
      if (mcpReference(reference) === undefined)
        check(`Persona "${id}"`, `/tools/toolIds/${index}`, reference, tool);
    for (const [index, skill] of (definition.skills ?? []).entries())
      if (!isInlineSkill(skill))
        check(`Persona "${id}"`, `/skills/${index}`, skill, { kind: "skill", known: skills });
    if (modelProfileId !== undefined)
      check(`Persona "${id}"`, "/identity/modelProfileId", modelProfileId, profile);
    const { compactionProfileId } = definition.memory ?? {};
    const { extract, consolidation: { by } = {} } = definition.memory ?? {};
    const checkHook = (name: HookUse, place: string, hook: HookTarget | undefined) => {
      if (hook === undefined) return;
      const { kind, reference } = hookReference(hook);
      const at = `/memory/${place}/${kind}`;
      check(`Persona "${id}"`, at, reference, kind === "task" ? hookTask : hookWorkflow);
      const target = parseReference(reference, library.id);
      const own = target.library === library.id && workflows.find((each) => each.id === target.id);
      const task =
        target.library === library.id && kind === "task" && code.known.find((each) => each.id === target.id);
      if (task) placedNow(`Persona "${id}", ${at}`, () => checkHookTask(name, task.id, task.definition));
      if (kind === "workflow" && own)
        placedNow(`Persona "${id}", ${at}`, () => checkHookFit(name, own.id, own.definition));
    };
    for (const name of HOOKS) checkHook(name, name, definition.memory?.[name]);
    checkHook("consolidation", "consolidation/by", by);
    if (compactionProfileId !== undefined)
      check(`Persona "${id}"`, "/memory/compactionProfileId", compactionProfileId, profile);
    if (definition.titles !== undefined)
      check(`Persona "${id}"`, "/titles/modelProfileId", definition.titles.modelProfileId, profile);
    if (typeof extract === "object")
      check(`Persona "${id}"`, "/memory/extract/profileId", extract.profileId, profile);
  }
  const action = { kind: "action", known: actions };
  const prompt = { kind: "prompt", known: prompts };
  const checkParts = (origin: string, at: string, given: InlineAction) => {
    const refers = refersTo(given);
    if (refers.prompt !== undefined) check(origin, `${at}/prompt`, refers.prompt, prompt);
    if (refers.profile !== undefined) check(origin, `${at}/profile`, refers.profile, profile);
  };
  for (const { id, definition } of tasks) {
    for (const [index, one] of (definition.steps ?? []).entries()) {
      const at = `/steps/${index}/action`;
      if (isReference(one.action)) check(`Task "${id}"`, at, one.action, action);
      else checkParts(`Task "${id}"`, at, one.action);
    }
  }
  for (const { id, definition } of actions)
    if (definition.kind !== "code") checkParts(`Action "${id}"`, "", definition);
  for (const { id, definition } of workflows) {
    for (const [index, node] of definition.nodes.entries()) {
      if (node.task !== undefined) check(`Workflow "${id}"`, `/nodes/${index}/task`, node.task, code);
      if (node.workflow !== undefined)
        check(`Workflow "${id}"`, `/nodes/${index}/workflow`, node.workflow, workflow);
    }
  }
  for (const { id, definition } of tools) {
    const target = workflowTarget(definition.target);
    if (target !== undefined) check(`Tool "${id}"`, "/target/workflow", target.workflow, workflow);
  }
  const sources = workflows.map((each) => ({
    library: library.id,
    id: each.id,
    definition: each.definition,
  }));
  checkNesting(sources, (key) => sources.find((each) => each.library === key.library && each.id === key.id));
  for (const { id, definition } of modelProfiles) {
    for (const [index, reference] of (definition.fallbacks ?? []).entries())
      check(`Model profile "${id}"`, `/fallbacks/${index}`, reference, profile);
  }
}

/** The definitions that a reference may resolve to in its own library. */
interface Target {
  kind: string;
  known: readonly Identified[];
  /** Definitions that the reference may have meant, and the fix for it. */
  other?: { known: readonly Identified[]; fix: string };
}

function checkReference(
  library: string,
  origin: string,
  reference: DefinitionReference,
  { kind, known, other }: Target,
): void {
  const target = parseReference(reference, library);
  if (target.library !== library || known.some(({ id }) => id === target.id)) return;
  const ids = known.map(({ id }) => id);
  const fix = other?.known.some(({ id }) => id === target.id) ? ` ${other.fix}` : "";
  throw invalid(
    `${origin}: library "${library}" has no ${kind} "${target.id}".${fix} It has: ${listIds(target.id, ids)}.`,
  );
}

function refuseDuplicates(library: string, kind: string, definitions: readonly Identified[]): void {
  const ids = definitions.map(({ id }) => id);
  const duplicate = ids.find((id, index) => ids.indexOf(id) < index);
  if (duplicate === undefined) return;
  throw invalid(
    `Library "${library}" has two definitions of the ${kind} "${duplicate}". Give one of them another id.`,
  );
}

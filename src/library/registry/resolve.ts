/**
 * Resolves a persona to the version chain that a conversation pins.
 *
 * CHAIN-1  The chain is complete and holds only data, so later changes of libraries do not affect it.
 * CHAIN-2  The tools of a chain have different names.
 * CHAIN-4  A tool of an MCP server that cannot be used now is withheld, with the reason. The rest of the persona still resolves.
 * CHAIN-3  Fallbacks are in the order of use. The fallbacks of a fallback follow it. A profile occurs once, never as its
 *          own fallback, and there are at most five fallbacks.
 */
import { z } from "zod";
import type { ModelProfile } from "../../model/profile.ts";
import type {
  Persona,
  PersonaSource,
  Pin,
  PinnedTool,
  ToolDefinition,
  VersionChain,
} from "../../protocol/definitions.ts";
import type { PinnedTask } from "../../protocol/task-definition.ts";
import { defined } from "../../shared/defined.ts";
import { invalid } from "../../shared/errors.ts";
import type { DefinitionReference } from "../../shared/identifiers.ts";
import { isJsonObject } from "../../shared/json.ts";
import { utf8Length } from "../../shared/utf8.ts";
import { validate } from "../../shared/validation.ts";
import { builtIn } from "../built-in/built-in.ts";
import { MEMORY_TOOLS } from "../built-in/memory-tools.ts";
import { READ_SKILL } from "../built-in/skill-tool.ts";
import { contentHash } from "../definitions/definition.ts";
import { mcpReference, mcpServerOf } from "../definitions/mcp-reference.ts";
import { placed, placedNow } from "../definitions/placed.ts";
import {
  formatReference,
  type LibraryReference,
  parseReference,
  referenceSchema,
} from "../definitions/reference.ts";
import { isInlineSkill, skillsOf } from "../definitions/version-chain.ts";
import { HOOKS, hookReference } from "../hooks/hook-forms.ts";
import { hasMemoryTools } from "../memory/scope.ts";
import { completePersona } from "../personas/persona.ts";
import { hasLibraryId, libraryIdSchema } from "../personas/persona-forms.ts";
import { MAX_FALLBACKS, personaSchema } from "../personas/persona-schema.ts";
import { checkSkills } from "../skills/skill.ts";
import { withModels } from "../tasks/pin.ts";
import { MAX_PINNED_BYTES } from "../tasks/task-limits.ts";
import { pinExtraction } from "./pin-extraction.ts";
import { pinHook } from "./pin-hook.ts";
import { checkPrices } from "./prices.ts";
import type { Registry } from "./registry.ts";

/** The message for a value of another type names both forms. */
const eitherForm = z.custom(isJsonObject, 'Must be a persona, or a reference as in "library/id".');

/**
 * Parses a persona that is given inline or by reference. Throws `INVALID_INPUT` with the invalid fields. Their JSON
 * pointers begin with `base`.
 */
export function parsePersonaSource(value: unknown, base = ""): Persona | DefinitionReference {
  if (hasLibraryId(value)) return validate(libraryIdSchema, value, base, "The persona's reference");
  if (isReference(value)) return validate(referenceSchema, value, base, "The persona's reference");
  validate(eitherForm, value, base, "The persona");
  return validate(personaSchema, value, base, "The persona");
}

/**
 * Resolves a persona, its tools and its model profile. A bare id in a persona means a definition of the same library. A
 * persona without a model profile gets the profile of its project, or else `defaultProfile`. `complete` adds settings of the deployment to each profile. Throws
 * `NOT_FOUND` for a definition that does not exist, `INVALID_INPUT` for invalid input.
 */
export async function resolveChain(
  registry: Registry,
  source: PersonaSource,
  defaultProfile: ModelProfile,
  complete: (profile: ModelProfile) => ModelProfile = (profile) => profile,
  ofProject: () => Promise<PinnedProfile | undefined> = async () => undefined,
): Promise<VersionChain> {
  const persona = await resolvePersona(registry, parsePersonaSource(source));
  const { identity, memory, tools, titles } = persona.definition;
  const { modelProfileId } = identity;
  const compactionId = memory?.compactionProfileId;
  const at = <Found>(pointer: string, find: () => Promise<Found>) =>
    placed(`Persona "${nameOf(persona)}", ${pointer}`, find);
  const profileAt = (pointer: string, reference: DefinitionReference) =>
    at(pointer, () => registry.modelProfile(parseReference(reference, persona.library)));
  const withheld: Record<string, string> = {};
  const toolsOf = async (reference: DefinitionReference): Promise<PinnedTool[]> => {
    const mcp = mcpReference(reference);
    if (mcp === undefined) return [await registry.tool(parseReference(reference, persona.library))];
    const named = await registry.mcp.resolve(mcp);
    Object.assign(withheld, named.withheld);
    return named.tools;
  };
  const [named, modelProfile, compactionProfile, titleProfile, skills] = await Promise.all([
    Promise.all([
      ...(tools?.toolIds ?? []).map((tool, index) => at(`/tools/toolIds/${index}`, () => toolsOf(tool))),
      ...platformTools(persona.definition).map((tool) => toolsOf(tool)),
    ]),
    modelProfileId === undefined
      ? ofProject().then((profile) => profile ?? inline("default", defaultProfile))
      : profileAt("/identity/modelProfileId", modelProfileId),
    compactionId === undefined ? undefined : profileAt("/memory/compactionProfileId", compactionId),
    titles && profileAt("/titles/modelProfileId", titles.modelProfileId),
    Promise.all(
      (persona.definition.skills ?? []).map(async (skill, index) =>
        isInlineSkill(skill)
          ? []
          : at(`/skills/${index}`, () => registry.skill(parseReference(skill, persona.library))),
      ),
    ),
  ]);
  // Two references may name one tool of an MCP server.
  const resolvedTools = fitting(named.flat().filter(isFirst), withheld);
  refuseEqualNames(resolvedTools);
  const extract = memory?.extract ?? false;
  const [contextAssembly, memoryExtraction] = await Promise.all(
    HOOKS.map(async (name) => {
      const target = memory?.[name];
      if (name === "memoryExtraction" && extract !== false) {
        const own =
          extract === true ? modelProfile : await profileAt("/memory/extract/profileId", extract.profileId);
        return pinExtraction(registry, own.definition);
      }
      if (target === undefined) return undefined;
      return at(`/memory/${name}/${hookReference(target).kind}`, () =>
        pinHook(registry, { name, target, home: persona.library }, { defaultProfile, complete }),
      );
    }),
  );
  const completed = (pin: PinnedProfile) => ({ ...pin, definition: complete(pin.definition) });
  const fallbacks = (await resolveFallbacks(registry, modelProfile)).map(completed);
  const withTask = <Part extends { task?: PinnedTask }>({ task, ...part }: Part) => ({
    ...part,
    ...defined({ task: task && withModels(task, modelProfile.definition, complete) }),
  });
  const chain: VersionChain = {
    persona,
    tools: resolvedTools.map(withTask),
    ...(Object.keys(withheld).length === 0 ? {} : { withheld }),
    modelProfile: completed(modelProfile),
    ...(fallbacks.length === 0 ? {} : { fallbacks }),
    ...(compactionProfile === undefined ? {} : { compactionProfile: completed(compactionProfile) }),
    ...(titleProfile === undefined ? {} : { titleProfile: completed(titleProfile) }),
    ...defined({
      contextAssembly: contextAssembly && withTask(contextAssembly),
      memoryExtraction: memoryExtraction && withTask(memoryExtraction),
    }),
    ...(skills.flat().length === 0 ? {} : { skills: skills.flat() }),
  };
  checkSize(chain);
  placedNow(`Persona "${nameOf(persona)}"`, () => checkSkills(skillsOf(chain) ?? []));
  const { budget } = persona.definition;
  if (budget !== undefined) checkPrices(chain, budget, `Persona "${nameOf(persona)}", `);
  return chain;
}

/** Moves tools of MCP servers that have no room in a conversation to `withheld` (CHAIN-4). */
function fitting(tools: readonly PinnedTool[], withheld: Record<string, string>): PinnedTool[] {
  let bytes = 0;
  return tools.filter(({ library = "", definition }) => {
    if (mcpServerOf(library) === undefined) return true;
    bytes += utf8Length(JSON.stringify(definition));
    if (bytes <= MAX_PINNED_BYTES) return true;
    withheld[definition.name] = "The tools of the MCP servers are too large together.";
    return false;
  });
}

function isFirst({ library = "", id }: PinnedTool, index: number, all: readonly PinnedTool[]): boolean {
  if (mcpServerOf(library) === undefined) return true;
  return all.findIndex((other) => other.library === library && other.id === id) === index;
}

/** Throws `INVALID_INPUT` for tasks and workflows that are too large to be pinned together. */
export function checkSize({ tools, contextAssembly, memoryExtraction }: VersionChain): void {
  const hooks = [contextAssembly, memoryExtraction];
  const parts = [
    ...[...tools, ...hooks].flatMap((part) => part?.task ?? []),
    ...hooks.flatMap((part) => part?.workflow ?? []),
  ];
  if (parts.length === 0) return;
  const bytes = utf8Length(JSON.stringify(parts));
  if (bytes <= MAX_PINNED_BYTES) return;
  throw invalid(
    `The tasks of the persona's tools and hooks, and the workflows of its hooks, have ${bytes} bytes as JSON together, with all that they refer to. The maximum is ${MAX_PINNED_BYTES}.`,
  );
}

type PinnedProfile = VersionChain["modelProfile"];

/** Returns the fallbacks of a profile (CHAIN-3). Throws `NOT_FOUND` for a missing profile, `INVALID_INPUT` for too many. */
export async function resolveFallbacks(
  registry: Registry,
  profile: Pick<PinnedProfile, "library" | "id" | "definition">,
): Promise<PinnedProfile[]> {
  const fallbacks: PinnedProfile[] = [];
  const seen = new Set([nameOf(profile)]);
  const add = async ({ library, definition }: Pick<PinnedProfile, "library" | "definition">) => {
    for (const reference of definition.fallbacks ?? []) {
      const target = parseReference(reference, library);
      if (seen.has(nameOf(target))) continue;
      if (fallbacks.length === MAX_FALLBACKS)
        throw invalid(
          `The model profile "${profile.id}" has more than ${MAX_FALLBACKS} fallbacks, including nested fallbacks. Name fewer.`,
        );
      const fallback = await registry.modelProfile(target);
      seen.add(nameOf(target));
      fallbacks.push(fallback);
      await add(fallback);
    }
  };
  await add(profile);
  return fallbacks;
}

function platformTools(persona: Persona): LibraryReference[] {
  const tools = [
    ...(hasMemoryTools(persona) ? MEMORY_TOOLS : []),
    ...(persona.skills === undefined ? [] : [READ_SKILL]),
  ];
  return tools.map(({ id }) => ({ library: builtIn.id, id }));
}

function nameOf({ library, id }: { library?: string; id: string }): string {
  return library === undefined ? id : formatReference({ library, id });
}

async function resolvePersona(
  registry: Registry,
  source: Persona | DefinitionReference,
): Promise<VersionChain["persona"]> {
  return isReference(source)
    ? registry.persona(parseReference(source))
    : inline("inline", completePersona(source));
}

function isReference(value: unknown): value is DefinitionReference {
  return typeof value === "string" || (typeof value === "object" && value !== null && "library" in value);
}

/** Pins a definition that no library holds. */
async function inline<Definition extends Persona | ModelProfile>(
  id: string,
  definition: Definition,
): Promise<Pin & { definition: Definition }> {
  return { id, version: 1, hash: await contentHash(definition), definition };
}

/** Throws `INVALID_INPUT` if two tools have the same name (CHAIN-2). */
export function refuseEqualNames(tools: readonly (Pin & { definition: ToolDefinition })[]): void {
  const byName = new Map<string, string>();
  for (const { definition, ...pin } of tools) {
    const other = byName.get(definition.name);
    if (other !== undefined)
      throw invalid(
        `The tools "${other}" and "${nameOf(pin)}" have the same name "${definition.name}". ${pin.library === builtIn.id ? "The second is a tool for memory or skills: rename the first, or set `memory.memoryTools` to false, or remove `skills`." : "Give the persona only one of them."}`,
      );
    byName.set(definition.name, nameOf(pin));
  }
}

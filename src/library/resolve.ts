/**
 * From a persona to everything that a conversation pins.
 *
 * CHAIN-1  The chain holds data only and is complete: no later change of a library alters it.
 * CHAIN-2  A model sees each tool name once.
 * CHAIN-3  The profiles that stand in are in the order in which they are tried: each is followed by those that stand in for
 *          it. None is there twice, nor the profile itself, and there are at most five.
 */
import type { ModelProfile } from "../model/profile.ts";
import type { Persona, Pin, ToolDefinition, VersionChain } from "../protocol/definitions.ts";
import type { DefinitionReference } from "../shared/definition-reference.ts";
import { DramatisError } from "../shared/errors.ts";
import { validate } from "../shared/validation.ts";
import { contentHash } from "./definition.ts";
import { completePersona } from "./persona.ts";
import { formatReference, parseReference, referenceSchema } from "./reference.ts";
import type { Registry, Resolved } from "./registry.ts";
import { MAX_FALLBACKS, personaSchema } from "./schemas.ts";

/**
 * Checks what a caller gave as a persona, inline or by reference. `INVALID_INPUT` says which field is wrong; `base` is
 * the JSON pointer that issues are reported under.
 */
export function parsePersonaSource(value: unknown, base = ""): Persona | DefinitionReference {
  const isReference =
    typeof value === "string" || (typeof value === "object" && value !== null && "library" in value);
  return isReference
    ? validate(referenceSchema, value, base, "The persona's reference")
    : validate(personaSchema, value, base, "The persona");
}

/**
 * Resolves a persona, its tools and its model profile. References without a library stay in the persona's own;
 * `defaultProfile` serves a persona that names none; `complete` adds to each profile what the deployment knows. Throws
 * `NOT_FOUND` naming what does not exist, and `INVALID_INPUT` for what is not valid.
 */
export async function resolveChain(
  registry: Registry,
  source: Persona | DefinitionReference,
  defaultProfile: ModelProfile,
  complete: (profile: ModelProfile) => ModelProfile = (profile) => profile,
): Promise<VersionChain> {
  const persona = await resolvePersona(registry, parsePersonaSource(source));
  const { identity, tools } = persona.definition;
  const [resolvedTools, modelProfile] = await Promise.all([
    Promise.all((tools?.toolIds ?? []).map((tool) => registry.tool(parseReference(tool, persona.library)))),
    identity.modelProfileId === undefined
      ? pinnedProfile(defaultProfile)
      : registry.modelProfile(parseReference(identity.modelProfileId, persona.library)),
  ]);
  refuseEqualNames(resolvedTools);
  const completed = (pin: PinnedProfile) => ({ ...pin, definition: complete(pin.definition) });
  const fallbacks = (await resolveFallbacks(registry, modelProfile)).map(completed);
  return {
    persona,
    tools: resolvedTools,
    modelProfile: completed(modelProfile),
    ...(fallbacks.length === 0 ? {} : { fallbacks }),
  };
}

/** A profile, and where it came from. */
type PinnedProfile = VersionChain["modelProfile"];

/**
 * Who answers when a profile's model cannot (CHAIN-3). Throws `NOT_FOUND` naming what does not exist, `INVALID_INPUT` where
 * there are too many.
 */
export async function resolveFallbacks(
  registry: Registry,
  profile: Pick<PinnedProfile, "library" | "id" | "definition">,
): Promise<PinnedProfile[]> {
  const found = new Map<string, PinnedProfile | null>([[nameOf(profile), null]]);
  const add = async ({ library, definition }: Pick<PinnedProfile, "library" | "definition">) => {
    for (const reference of definition.fallbacks ?? []) {
      const target = parseReference(reference, library);
      if (found.has(nameOf(target))) continue;
      if (found.size > MAX_FALLBACKS) {
        throw new DramatisError(
          "INVALID_INPUT",
          `More than ${MAX_FALLBACKS} model profiles would stand in for "${profile.id}", those that its own name included. Name fewer.`,
        );
      }
      const fallback = await registry.modelProfile(target);
      found.set(nameOf(target), fallback);
      await add(fallback);
    }
  };
  await add(profile);
  return [...found.values()].filter((fallback) => fallback !== null);
}

function nameOf({ library, id }: { library?: string; id: string }): string {
  return library === undefined ? id : formatReference({ library, id });
}

async function resolvePersona(
  registry: Registry,
  source: Persona | DefinitionReference,
): Promise<Pin & { definition: Persona }> {
  if (isReference(source)) return registry.persona(parseReference(source));
  const definition = completePersona(source);
  return { id: "inline", version: 1, hash: await contentHash(definition), definition };
}

function isReference(source: Persona | DefinitionReference): source is DefinitionReference {
  return typeof source === "string" || "library" in source;
}

async function pinnedProfile(definition: ModelProfile): Promise<VersionChain["modelProfile"]> {
  return { id: "default", version: 1, hash: await contentHash(definition), definition };
}

/** CHAIN-2: throws `INVALID_INPUT` naming both. */
export function refuseEqualNames(tools: readonly Resolved<ToolDefinition>[]): void {
  const byName = new Map<string, string>();
  for (const { library, id, definition } of tools) {
    const other = byName.get(definition.name);
    if (other !== undefined) {
      throw new DramatisError(
        "INVALID_INPUT",
        `The tools "${other}" and "${library}/${id}" have the same name "${definition.name}". Give the persona one of them.`,
      );
    }
    byName.set(definition.name, `${library}/${id}`);
  }
}

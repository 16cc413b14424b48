/** The model profiles of a version chain with their context budgets, and its skills. */
import type { ModelProfile } from "../../model/profile.ts";
import type { Persona, Skill, VersionChain } from "../../protocol/definitions.ts";

/** Returns the profile at `index` in the order of use: 0 is the agent's own profile, then its fallbacks follow. */
export function profileAt(
  { modelProfile, fallbacks = [] }: Pick<VersionChain, "modelProfile" | "fallbacks">,
  index: number,
): ModelProfile | undefined {
  return [modelProfile, ...fallbacks][index]?.definition;
}

export function compactionProfile({ modelProfile, compactionProfile: own }: VersionChain): ModelProfile {
  return (own ?? modelProfile).definition;
}

/** Returns the profile of the model that writes titles: the persona names it, if a model writes titles at all. */
export function titleProfile({ modelProfile, titleProfile: own }: VersionChain): ModelProfile {
  return (own ?? modelProfile).definition;
}

/** Token limit for instructions, tools and history if the persona and the profile set no limit. */
const DEFAULT_CONTEXT_TOKENS = 60_000;

/** Returns the token limit for instructions, tools and history in a model call. `profile` defaults to the agent's own profile. */
export function contextTokens(
  { persona, modelProfile }: Pick<VersionChain, "persona" | "modelProfile">,
  profile = modelProfile.definition,
): number {
  const limits = [persona.definition.memory?.contextTokens, profile.contextTokens];
  const set = limits.filter((limit) => limit !== undefined);
  return set.length === 0 ? DEFAULT_CONTEXT_TOKENS : Math.min(...set);
}

export function isInlineSkill(skill: NonNullable<Persona["skills"]>[number]): skill is Skill {
  return typeof skill === "object" && "files" in skill;
}

/** Returns the skills of an agent in the order of its persona: inline skills, and pinned skills for references (SKILL-7). `undefined` without skills. */
export function skillsOf({
  persona,
  skills: pinned = [],
}: Pick<VersionChain, "persona" | "skills">): Skill[] | undefined {
  const named = pinned.values();
  return persona.definition.skills?.flatMap((skill) =>
    isInlineSkill(skill) ? [skill] : (named.next().value?.definition ?? []),
  );
}

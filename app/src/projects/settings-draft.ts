/**
 * The form of a project's settings, and the change that it makes. Pure.
 *
 * SETTINGSFORM-1  A change names only the settings that the form changed. An emptied setting is `null`, which removes it.
 * SETTINGSFORM-2  Without a change of the form there is no change.
 */
import type { Project } from "../../../src/client/index.ts";
import { PROVIDERS, type ProviderId } from "../../../src/model/profile.ts";
import type { ProjectChange } from "../../../src/protocol/projects.ts";

/** The values of the fields. An empty text is no setting. */
export interface SettingsDraft {
  name: string;
  modelProfileId: string;
  /** The allowed providers in the order of `PROVIDERS`. An empty list allows all. */
  providers: ProviderId[];
  /** Only the servers of `servers` may be used. */
  limitsServers: boolean;
  /** Ids with commas between them. */
  servers: string;
  maxConcurrentRuns: string;
  maxModelCallsPerHour: string;
  tokens: string;
}

export function draftOf(project: Project): SettingsDraft {
  const { name = "", modelProfileId = "", allowedModelProviders = [], allowedMcpServers } = project;
  return {
    name,
    modelProfileId,
    providers: PROVIDERS.filter((provider) => allowedModelProviders.includes(provider)),
    limitsServers: allowedMcpServers !== undefined,
    servers: (allowedMcpServers ?? []).join(", "),
    maxConcurrentRuns: textOf(project.limits?.maxConcurrentRuns),
    maxModelCallsPerHour: textOf(project.limits?.maxModelCallsPerHour),
    tokens: textOf(project.budget?.tokens),
  };
}

/** Returns the change from one draft to another; `undefined` if they are equal. */
export function changeOf(from: SettingsDraft, to: SettingsDraft): ProjectChange | undefined {
  const [before, after] = [settingsOf(from), settingsOf(to)];
  const limits = changed(before.limits, after.limits);
  const change = { ...changed(before.plain, after.plain), ...(limits === undefined ? {} : { limits }) };
  return Object.keys(change).length === 0 ? undefined : change;
}

/** Returns the ids of a text with commas or spaces between them. */
export function listOf(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((part) => part !== ""))];
}

function settingsOf(draft: SettingsDraft) {
  const { name, modelProfileId, providers, limitsServers, servers, tokens } = draft;
  return {
    plain: {
      name: name.trim() || null,
      modelProfileId: modelProfileId.trim() || null,
      allowedModelProviders: providers.length === 0 ? null : providers,
      allowedMcpServers: limitsServers ? listOf(servers) : null,
      budget: tokens.trim() === "" ? null : { tokens: Number(tokens) },
    },
    limits: {
      maxConcurrentRuns: numberOf(draft.maxConcurrentRuns),
      maxModelCallsPerHour: numberOf(draft.maxModelCallsPerHour),
    },
  };
}

/** Returns the members of `after` with another value than in `before`. */
function changed<Values extends object>(before: Values, after: Values): Partial<Values> | undefined {
  // SAFETY: the members are members of `Values`.
  const names = Object.keys(after) as (keyof Values)[];
  const different = names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  if (different.length === 0) return undefined;
  // SAFETY: each entry is a member of `after`.
  return Object.fromEntries(different.map((name) => [name, after[name]])) as Partial<Values>;
}

function numberOf(text: string): number | null {
  return text.trim() === "" ? null : Number(text);
}

function textOf(number: number | undefined): string {
  return number === undefined ? "" : String(number);
}

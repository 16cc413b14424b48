/**
 * The settings of projects, as decisions. Pure.
 *
 * SETTING-1  A model call of a project uses an allowed provider, within the calls of the hour and the tokens of the budget. Otherwise the model
 *            is not called, and the error names the project and the setting.
 * SETTING-2  A run of a project begins only within `limits.maxConcurrentRuns`. Runs that another run or a hook waits for always begin.
 * SETTING-5  A call of a tool of an MCP server runs only if the project allows the server. A denial has the rule `project`.
 */
import type { ProviderId } from "../model/profile.ts";
import type { ProjectSettings } from "../protocol/projects.ts";
import type { ErrorData } from "../shared/errors.ts";

const HOUR_MS = 3_600_000;

/** Returns the number of an hour of the clock. `now` is in milliseconds since the epoch. */
export function hourOf(now: number): number {
  return Math.floor(now / HOUR_MS);
}

export function countsCalls({ limits, budget }: ProjectSettings): boolean {
  return limits?.maxModelCallsPerHour !== undefined || budget !== undefined;
}

/** Returns the error of a call to a provider that the project does not allow (SETTING-1). */
export function providerRefusal(
  project: string,
  { allowedModelProviders: allowed }: ProjectSettings,
  provider: ProviderId,
): ErrorData | undefined {
  if (allowed === undefined || allowed.includes(provider)) return undefined;
  const message = `The project "${project}" allows models of ${allowed.join(", ")} only, and this model is of ${provider}. Use another model profile, or change \`allowedModelProviders\` of the project.`;
  return { code: "PERMISSION_DENIED", message, retriable: false };
}

/** Returns the error of a call beyond the tokens or the calls of the project (SETTING-1). `calls` are the calls of this hour. */
export function usageRefusal(
  project: string,
  { limits = {}, budget }: ProjectSettings,
  { tokens, calls }: { tokens: number; calls: number },
  now: number,
): ErrorData | undefined {
  if (budget !== undefined && tokens >= budget.tokens) {
    const message = `The project "${project}" has used ${tokens} of the ${budget.tokens} tokens of its budget. Raise \`budget.tokens\` of the project.`;
    return { code: "BUDGET_EXCEEDED", message, retriable: false };
  }
  const { maxModelCallsPerHour: most } = limits;
  if (most === undefined || calls < most) return undefined;
  const message = `The project "${project}" may call models ${most} times in an hour. Wait for the next hour, or raise \`limits.maxModelCallsPerHour\` of the project.`;
  return { code: "RATE_LIMITED", message, retriable: true, retryAfter: HOUR_MS - (now % HOUR_MS) };
}

/** Returns the error of a run beyond the limit (SETTING-2). */
export function runRefusal(project: string, most: number, active: number): ErrorData | undefined {
  if (active < most) return undefined;
  const message = `The project "${project}" has ${active} active runs and may have ${most}. Wait for the end of a run, or raise \`limits.maxConcurrentRuns\` of the project.`;
  return { code: "RATE_LIMITED", message, retriable: true };
}

/** Reports whether a project may use a server of the Model Context Protocol (SETTING-5). */
export function mayUseMcpServer({ allowedMcpServers: allowed }: ProjectSettings, server: string): boolean {
  return allowed?.includes(server) ?? true;
}

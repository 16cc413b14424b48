/** The filters of the list of turns, as the address has them. Pure. */
import type { MessageSearch, TurnsListRequest } from "../../../src/client/index.ts";
import { isoOf, localInput } from "../memory/local-time.ts";

export const FILTERS = [
  "text",
  "role",
  "status",
  "issues",
  "agent",
  "tool",
  "user",
  "since",
  "until",
] as const;

/** An empty text does not filter. `since` and `until` are local times, such as `2026-05-01T00:00`. */
export type TurnChoice = Record<(typeof FILTERS)[number], string>;

export const NO_FILTER: TurnChoice = {
  ...{ text: "", role: "", status: "", issues: "", agent: "", tool: "", user: "", since: "", until: "" },
};

const STATUSES = ["active", "completed", "failed", "stopped"] as const;

/** Returns the filters of a query string. It ignores unknown names. */
export function choiceOf(search: string): TurnChoice {
  const given = new URLSearchParams(search);
  const entries = FILTERS.map((name) => [name, given.get(name) ?? ""] as const);
  const choice: TurnChoice = { ...NO_FILTER, ...Object.fromEntries(entries) };
  return { ...choice, status: STATUSES.find((name) => name === choice.status) ?? "" };
}

/** Returns the query string of filters; an empty text without filters. */
export function searchOf(choice: TurnChoice): string {
  const set = FILTERS.flatMap((name) => {
    const value = choice[name].trim();
    return value === "" ? [] : [[name, value]];
  });
  return set.length === 0 ? "" : `?${new URLSearchParams(set)}`;
}

/** Returns the filters for the API. It leaves out times that cannot be read, and unknown statuses. */
export function filterOf({ status, issues, agent, tool, user, since, until }: TurnChoice): TurnsListRequest {
  const from = isoOf(since);
  const to = isoOf(until);
  const known = STATUSES.find((name) => name === status);
  return {
    ...(known === undefined ? {} : { status: known }),
    ...(issues === "tool" ? { issues } : {}),
    ...(agent === "" ? {} : { agent }),
    ...(tool === "" ? {} : { tool }),
    ...(user === "" ? {} : { user }),
    ...(from === undefined ? {} : { since: from }),
    ...(to === undefined ? {} : { until: to }),
  };
}

/** Returns the search for the API. It leaves out times that cannot be read, and unknown roles. */
export function messageSearchOf({ text, role, agent, user, since, until }: TurnChoice): MessageSearch {
  const known = (["agent", "user"] as const).find((name) => name === role);
  const request = filterOf({ ...NO_FILTER, agent, user, since, until });
  return { q: text.trim(), ...request, ...(known === undefined ? {} : { role: known }) };
}

/** Returns the filters for failed turns since 18:00 of the day before. */
export function lastNight(now: Date): TurnChoice {
  const since = new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1, 18);
  return { ...NO_FILTER, status: "failed", since: localInput(since.toISOString()) };
}

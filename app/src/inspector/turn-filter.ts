/** The filters of the list of turns, as the address has them. Pure. */
import type { MessageSearch, TurnsListRequest } from "../../../src/client/index.ts";
import { isoOf, localInput } from "../memory/local-time.ts";

const HOUR_MS = 3_600_000;

export const FILTERS = [
  "text",
  "role",
  "status",
  "issues",
  "agent",
  "tool",
  "user",
  "last",
  "since",
  "until",
] as const;

/** An empty text does not filter. `last` is a name of `PERIODS`. A time without a zone in `since` or `until` is local. */
export type TurnChoice = Record<(typeof FILTERS)[number], string>;

export const NO_FILTER: TurnChoice = {
  ...{
    text: "",
    role: "",
    status: "",
    issues: "",
    agent: "",
    tool: "",
    user: "",
    last: "",
    since: "",
    until: "",
  },
};

/** Times before now: their names in the address, with their hours. */
const PERIODS: ReadonlyMap<string, number> = new Map([
  ["24h", 24],
  ["7d", 7 * 24],
]);

const STATUSES = ["active", "completed", "failed", "stopped"] as const;

/** Returns the filters of a query string. It ignores unknown names, statuses and periods. */
export function choiceOf(search: string): TurnChoice {
  const given = new URLSearchParams(search);
  const entries = FILTERS.map((name) => [name, given.get(name) ?? ""] as const);
  const choice: TurnChoice = { ...NO_FILTER, ...Object.fromEntries(entries) };
  const last = PERIODS.has(choice.last) ? choice.last : "";
  return { ...choice, last, status: STATUSES.find((name) => name === choice.status) ?? "" };
}

/** Returns the query string of filters; an empty text without filters. */
export function searchOf(choice: TurnChoice): string {
  const set = FILTERS.flatMap((name) => {
    const value = choice[name].trim();
    return value === "" ? [] : [[name, value]];
  });
  return set.length === 0 ? "" : `?${new URLSearchParams(set)}`;
}

/** Returns the filters for the API, which checks them. */
export function filterOf(choice: TurnChoice, now: Date): TurnsListRequest {
  const { status, issues, agent, tool, user, last, since, until } = choice;
  const hours = PERIODS.get(last);
  const from = hours === undefined ? timeOf(since) : new Date(now.getTime() - hours * HOUR_MS).toISOString();
  const to = timeOf(until);
  const known = STATUSES.find((name) => name === status);
  return {
    ...(known === undefined ? {} : { status: known }),
    ...(issues === "tool" ? { issues } : {}),
    ...(agent === "" ? {} : { agent }),
    ...(tool === "" ? {} : { tool }),
    ...(user === "" ? {} : { user }),
    ...(from === "" ? {} : { since: from }),
    ...(to === "" ? {} : { until: to }),
  };
}

/** Returns the search for the API, as `filterOf`. It leaves out unknown roles. */
export function messageSearchOf(choice: TurnChoice, now: Date): MessageSearch {
  const { text, role, agent, user, last, since, until } = choice;
  const known = (["agent", "user"] as const).find((name) => name === role);
  const request = filterOf({ ...NO_FILTER, agent, user, last, since, until }, now);
  return { q: text.trim(), ...request, ...(known === undefined ? {} : { role: known }) };
}

/** Returns the filters for failed turns since 18:00 of the day before. */
export function lastNight(now: Date): TurnChoice {
  const since = new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1, 18);
  return { ...NO_FILTER, status: "failed", since: localInput(since.toISOString()) };
}

/** Returns a time without a zone as ISO time, and every other text unchanged. */
function timeOf(text: string): string {
  return (/^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?$/.test(text) ? isoOf(text) : undefined) ?? text;
}

/**
 * The settings of projects, and the tokens and calls that count against them.
 *
 * SETTING-3  An isolate uses settings for `KNOWN_MS`. The limits of calls and tokens are checked against the stored settings, in the statement
 *            that counts the call.
 * SETTING-4  If D1 fails, or does not answer within `WAIT_MS`, the last known settings apply for `KNOWN_MS`, without counts. So
 *            an outage stops no turn and no run.
 */
import type { ProviderId } from "../model/profile.ts";
import { amountsOf } from "../model/spending.ts";
import type { TokenUsage } from "../model/usage.ts";
import {
  countsCalls,
  hourOf,
  providerRefusal,
  runRefusal,
  usageRefusal,
} from "../policy/project-settings.ts";
import type { Clock } from "../ports/clock.ts";
import { unanswered, withDeadline } from "../ports/deadline.ts";
import type { ProjectChange, ProjectSettings } from "../protocol/projects.ts";
import { type ErrorData, unwrap } from "../shared/errors.ts";
import { D1Queries } from "./queries.ts";

/** Time in which an isolate uses the settings that it has read, in milliseconds. */
const KNOWN_MS = 10_000;
const MAX_KNOWN = 10_000;
/** Time that a model call or the start of a run waits for D1, in milliseconds. */
const WAIT_MS = 2_000;

const FIND = "SELECT settings FROM projects WHERE tenant = ?1 AND id = ?2";
/** `?3` is a merge patch. Without a budget, no tokens are counted. */
const CHANGE = `UPDATE projects SET settings = json_patch(settings, ?3),
  tokens = iif(json_patch(settings, ?3) ->> '$.budget' IS NULL, 0, tokens)
WHERE tenant = ?1 AND id = ?2 RETURNING id`;
/** The calls in the hour `?3`. The clock of another isolate may already be in the next hour. */
const CALLS = "iif(hour BETWEEN ?3 AND ?3 + 1, calls, 0)";
const BEGIN_CALL = `UPDATE projects SET calls = ${CALLS} + 1, hour = iif(hour = ?3 + 1, hour, ?3)
WHERE tenant = ?1 AND id = ?2
  AND coalesce(${CALLS} < settings ->> '$.limits.maxModelCallsPerHour', 1)
  AND coalesce(tokens < settings ->> '$.budget.tokens', 1)
RETURNING id`;
const USED = `SELECT settings, tokens, ${CALLS} AS calls FROM projects WHERE tenant = ?1 AND id = ?2`;
const ADD_TOKENS = "UPDATE projects SET tokens = tokens + ?3 WHERE tenant = ?1 AND id = ?2";

interface Known {
  settings: ProjectSettings;
  /** Milliseconds since the epoch. */
  until: number;
  /** D1 has failed, so nothing is counted. */
  isDown: boolean;
}

/** The settings that an isolate has read, by tenant and project. All stores of the isolate share it. */
export type KnownSettings = Map<string, Known>;

interface ProjectPlace {
  tenant: string;
  projectId: string;
}

export class D1ProjectSettings {
  readonly #queries: D1Queries;

  constructor(
    database: D1Database,
    private readonly known: KnownSettings,
    private readonly clock: Pick<Clock, "now" | "timer">,
  ) {
    this.#queries = new D1Queries(database, clock);
  }

  /** Returns the settings of a project; none without the project (SETTING-3, SETTING-4). */
  async read(place: ProjectPlace): Promise<ProjectSettings> {
    return (await this.#known(place)).settings;
  }

  async #known(place: ProjectPlace): Promise<Known> {
    const known = this.known.get(keyOf(place));
    if (known !== undefined && this.clock.now() < known.until) return known;
    const read = this.#inTime(() => this.#find(place));
    return read.then(
      (settings) => this.#keep(place, settings, false),
      () => this.#giveUp(place),
    );
  }

  #keep(place: ProjectPlace, settings: ProjectSettings, isDown: boolean): Known {
    const key = keyOf(place);
    const known = { settings, until: this.clock.now() + KNOWN_MS, isDown };
    this.known.delete(key);
    this.known.set(key, known);
    const [oldest] = this.known.keys();
    if (this.known.size > MAX_KNOWN && oldest !== undefined) this.known.delete(oldest);
    return known;
  }

  /** Keeps the newest known settings, without asking D1. Another request may have read them meanwhile. */
  #giveUp(place: ProjectPlace): Known {
    return this.#keep(place, this.known.get(keyOf(place))?.settings ?? {}, true);
  }

  #inTime<Answer>(query: () => Promise<Answer>): Promise<Answer> {
    return withDeadline(this.clock, WAIT_MS, query, { reason: unanswered("The database", WAIT_MS) });
  }

  /** Applies a merge patch to the name and the settings. Returns `false` without the project. Throws `UNAVAILABLE`. */
  async change({ tenant, projectId }: ProjectPlace, change: ProjectChange): Promise<boolean> {
    const changed = await this.#queries.change(CHANGE, tenant, projectId, JSON.stringify(change));
    this.known.delete(keyOf({ tenant, projectId }));
    return changed.length > 0;
  }

  /** Counts a model call. Returns the error of a call that the settings refuse (SETTING-1). */
  async refusal(place: ProjectPlace, provider: ProviderId): Promise<ErrorData | undefined> {
    const { tenant, projectId } = place;
    const { settings, isDown } = await this.#known(place);
    const refused = providerRefusal(projectId, settings, provider);
    if (refused !== undefined || isDown || !countsCalls(settings)) return refused;
    const now = this.clock.now();
    try {
      return await this.#inTime(async () => {
        const begun = await this.#queries.change(BEGIN_CALL, tenant, projectId, hourOf(now));
        if (begun.length > 0) return undefined;
        const [used] = await this.#queries.read<{ settings: string; tokens: number; calls: number }>(
          ...[USED, tenant, projectId, hourOf(now)],
        );
        return used && usageRefusal(projectId, JSON.parse(used.settings), used, now);
      });
    } catch {
      this.#giveUp(place);
      return undefined;
    }
  }

  /**
   * Reports whether the active runs of a project are limited. Throws `RATE_LIMITED` at the limit (SETTING-2). If the number of active runs is
   * unknown, the run may begin.
   */
  async permitRun(place: ProjectPlace, activeRuns: () => Promise<number | undefined>): Promise<boolean> {
    const { settings, isDown } = await this.#known(place);
    const most = settings.limits?.maxConcurrentRuns;
    if (most === undefined) return false;
    const counted = isDown ? undefined : await this.#inTime(activeRuns).catch(() => void this.#giveUp(place));
    const active = counted ?? 0;
    const error = runRefusal(place.projectId, most, active);
    if (error !== undefined) unwrap({ ok: false, error });
    return true;
  }

  /** Adds the usage of an ended model call, if the project has a budget. */
  async spend(place: ProjectPlace, usage: TokenUsage): Promise<void> {
    const { settings, isDown } = await this.#known(place);
    const { tokens } = amountsOf(usage, undefined);
    if (settings.budget === undefined || isDown || tokens === 0) return;
    const add = () => this.#queries.change(ADD_TOKENS, place.tenant, place.projectId, tokens);
    await this.#inTime(add).catch(() => this.#giveUp(place));
  }

  async #find({ tenant, projectId }: ProjectPlace): Promise<ProjectSettings> {
    const [row] = await this.#queries.read<{ settings: string }>(FIND, tenant, projectId);
    // SAFETY: only `change` and the creation of projects write this column.
    return row === undefined ? {} : (JSON.parse(row.settings) as ProjectSettings);
  }
}

function keyOf({ tenant, projectId }: ProjectPlace): string {
  return JSON.stringify([tenant, projectId]);
}

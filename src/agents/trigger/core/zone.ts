/**
 * Times of the clock in a zone of the IANA database, and the instants at which they occur. Pure: the runtime has the database.
 *
 * ZONE-1  A time that the zone's clock shows twice means the first of the two instants. One that it skips means the instant at which the
 *         clock goes on.
 */
import { DramatisError } from "../../../shared/errors.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

export class Zone {
  readonly #format: Intl.DateTimeFormat;

  /** Throws `INVALID_INPUT` for a zone that does not exist. */
  constructor(name: string, path = "/when/timeZone") {
    try {
      // A fixed offset is no name of a zone.
      if (!/^[A-Za-z]/.test(name)) throw new RangeError(name);
      this.#format = new Intl.DateTimeFormat("en-US", { timeZone: name, timeZoneName: "longOffset" });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      const message = `There is no time zone "${name}". Give a name of the IANA database, such as Europe/Berlin.`;
      throw new DramatisError("INVALID_INPUT", message, { errors: [{ path, message }] });
    }
  }

  /** Returns what the clock shows at an instant, as the milliseconds of the same date and time in UTC. */
  clockAt(instant: number): number {
    return instant + this.#offsetAt(instant);
  }

  /** Returns the instant of a time of the clock (ZONE-1), which is given as the milliseconds of the same date and time in UTC. */
  instantOf(clock: number): number {
    // Offsets are at most 14 hours, so the instant is between these two.
    const [from, to] = [clock - DAY_MS, clock + DAY_MS];
    const [before, after] = [this.#offsetAt(from), this.#offsetAt(to)];
    if (before === after) return clock - before;
    const instants = [clock - before, clock - after].filter((instant) => this.clockAt(instant) === clock);
    return instants.length > 0 ? Math.min(...instants) : this.#change(from, to);
  }

  /** Returns the minute in which the offset changes between two instants. */
  #change(from: number, to: number): number {
    const before = this.#offsetAt(from);
    let [low, high] = [Math.floor(from / MINUTE_MS), Math.floor(to / MINUTE_MS)];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.#offsetAt(middle * MINUTE_MS) === before) low = middle;
      else high = middle;
    }
    return high * MINUTE_MS;
  }

  #offsetAt(instant: number): number {
    const name = this.#format.formatToParts(instant).find(({ type }) => type === "timeZoneName")?.value ?? "";
    const match = /^GMT(?:([+-])(\d{2}):(\d{2})(?::(\d{2}))?)?$/.exec(name);
    if (match === null) throw new Error(`The runtime names an offset "${name}".`);
    const [, sign, hours = 0, minutes = 0, seconds = 0] = match;
    const size = (Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds)) * 1_000;
    return sign === "-" ? -size : size;
  }
}

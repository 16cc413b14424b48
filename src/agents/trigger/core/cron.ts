/**
 * Cron expressions in zones of the IANA database. `croner` parses them and handles clock changes.
 *
 * CRON-1  An expression has five fields: minute, hour, day of the month, month, day of the week. If both days are restricted, a match of
 *         either day suffices. `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly` are accepted, too.
 * CRON-2  The expression uses the zone's local time. If a time of day occurs twice, it fires only the first time. If it does not exist, it
 *         fires when the clock jumps. Expressions with a step of minutes or hours also fire in a repeated hour.
 * CRON-3  An expression must have a date in the next ten years.
 */
import { Cron } from "croner";
import { invalidAt } from "../../../shared/validation.ts";

const WORDS = ["@hourly", "@daily", "@weekly", "@monthly", "@yearly", "@annually", "@midnight"];

/** Parses the expression. Throws `INVALID_INPUT` with the place in the request. */
export function parseCron(text: string, timeZone = "UTC"): Cron {
  // `croner` would accept a date, and fields for seconds and years.
  const fields = text.trim().split(/\s+/).length;
  if (fields !== 5 && !text.startsWith("@"))
    throw invalidAt(
      "/when/cron",
      `"${text}" has ${fields} fields. Give five: minute, hour, day of the month, month, day of the week.`,
    );
  if (text.startsWith("@") && !WORDS.includes(text.trim().toLowerCase()))
    throw invalidAt("/when/cron", `Unknown word "${text}". Give five fields, or one of ${WORDS.join(", ")}.`);
  checkZone(timeZone);
  try {
    return new Cron(text, { timezone: timeZone, mode: text.startsWith("@") ? "auto" : "5-part" });
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^CronPattern: /, "") : String(error);
    throw invalidAt("/when/cron", `The cron expression "${text}" is not valid: ${reason}`);
  }
}

/** Returns the first time after `after` in milliseconds, if any. */
export function nextTime(cron: Cron, after: number): number | undefined {
  return cron.nextRun(new Date(after))?.getTime();
}

function checkZone(name: string): void {
  try {
    // A fixed offset is not the name of a zone.
    if (!/^[A-Za-z]/.test(name)) throw new RangeError(name);
    new Intl.DateTimeFormat("en-US", { timeZone: name });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw invalidAt(
      "/when/timeZone",
      `Unknown time zone "${name}". Give a name of the IANA database, such as Europe/Berlin.`,
    );
  }
}

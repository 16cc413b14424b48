/**
 * Cron expressions in zones of the IANA database. `croner` reads them and knows the changes of the clock.
 *
 * CRON-1  An expression has five fields: minute, hour, day of the month, month, day of the week. Where neither of the two days is `*`,
 *         one of them suffices. `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly` are accepted, too.
 * CRON-2  The expression names times of the zone's clock. A time of day that occurs twice fires once, the first time, and one that does not
 *         exist fires when the clock goes on. What fires every some minutes or hours goes on firing through the hour that occurs twice.
 * CRON-3  An expression without a date in the next ten years is refused.
 */
import { Cron } from "croner";
import { invalidAt } from "../../../shared/validation.ts";

const WORDS = ["@hourly", "@daily", "@weekly", "@monthly", "@yearly", "@annually", "@midnight"];

/** Reads the expression. Throws `INVALID_INPUT` with the place in the request. */
export function parseCron(text: string, timeZone = "UTC"): Cron {
  // `croner` would take a date, and fields of seconds and years.
  const fields = text.trim().split(/\s+/).length;
  if (fields !== 5 && !text.startsWith("@"))
    throw invalidAt(
      "/when/cron",
      `"${text}" has ${fields} fields. Give five: minute, hour, day of the month, month, day of the week.`,
    );
  if (text.startsWith("@") && !WORDS.includes(text.trim().toLowerCase()))
    throw invalidAt("/when/cron", `There is no "${text}". Give five fields, or one of ${WORDS.join(", ")}.`);
  checkZone(timeZone);
  try {
    return new Cron(text, { timezone: timeZone, mode: text.startsWith("@") ? "auto" : "5-part" });
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^CronPattern: /, "") : String(error);
    throw invalidAt("/when/cron", `The cron expression "${text}" is not valid: ${reason}`);
  }
}

/** Returns the first time after `after`, in milliseconds; `undefined` if there is none. */
export function nextTime(cron: Cron, after: number): number | undefined {
  return cron.nextRun(new Date(after))?.getTime();
}

function checkZone(name: string): void {
  try {
    // A fixed offset is no name of a zone.
    if (!/^[A-Za-z]/.test(name)) throw new RangeError(name);
    new Intl.DateTimeFormat("en-US", { timeZone: name });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw invalidAt(
      "/when/timeZone",
      `There is no time zone "${name}". Give a name of the IANA database, such as Europe/Berlin.`,
    );
  }
}

/** Reads a question about the calendar as arguments of the tool `dates`. */

const DATE = /\b\d{4}-\d{2}-\d{2}\b/g;
const CALENDAR =
  /\b(?:today|tomorrow|yesterday|weekday|(?:what|which) (?:day|date)|(?:the|current) date|(?:in )?\d{1,5} (?:day|week|month|year)s? (?:ago|from now|from today|later)|in \d{1,5} (?:day|week|month|year)s?|days? (?:until|till|since|between))\b/i;
const SPAN = /\b(\d{1,5}) (day|week|month|year)s?\b( ago)?/i;

/** Returns `undefined` for a sentence without a question about dates. */
export function readDateQuestion(sentence: string): Record<string, unknown> | undefined {
  const [date, until] = sentence.match(DATE) ?? [];
  const has = (words: RegExp) => words.test(sentence);
  if (date === undefined && !has(CALENDAR)) return undefined;
  if (date !== undefined) {
    if (until !== undefined) return { action: "difference", date, until };
    if (has(/\b(?:until|till)\b/i)) return { action: "difference", until: date };
    if (has(/\bsince\b/i)) return { action: "difference", date };
  }
  const from = date === undefined ? {} : { date };
  const [, amount, unit = "", isPast] = SPAN.exec(sentence) ?? [];
  if (amount !== undefined) {
    const signed = isPast === undefined ? Number(amount) : -Number(amount);
    return { action: "add", ...from, [`${unit.toLowerCase()}s`]: signed };
  }
  if (date !== undefined) return { action: "weekday", date };
  if (has(/\btomorrow\b/i)) return { action: "add", days: 1 };
  return has(/\byesterday\b/i) ? { action: "add", days: -1 } : { action: "today" };
}

/** Reads a question about the calendar as the arguments of the tool `dates`. */

const DATE = /\b\d{4}-\d{2}-\d{2}\b/g;
const CALENDAR =
  /\b(?:today|tomorrow|yesterday|weekday|(?:what|which) (?:day|date)|(?:the|current) date|(?:in )?\d{1,5} (?:day|week|month|year)s? (?:ago|from now|from today|later)|in \d{1,5} (?:day|week|month|year)s?|days? (?:until|till|since|between))\b/i;
const SPAN = /\b(\d{1,5}) (day|week|month|year)s?\b( ago)?/i;

/** `undefined` if the sentence asks nothing about dates. */
export function readDateQuestion(sentence: string): Record<string, unknown> | undefined {
  const [first, second] = sentence.match(DATE) ?? [];
  if (first === undefined && !CALENDAR.test(sentence)) return undefined;
  if (first !== undefined && second !== undefined)
    return { action: "difference", date: first, until: second };
  if (first !== undefined && /\b(?:until|till)\b/i.test(sentence))
    return { action: "difference", until: first };
  if (first !== undefined && /\bsince\b/i.test(sentence)) return { action: "difference", date: first };
  const from = first === undefined ? {} : { date: first };
  const [, amount, unit = "", isPast] = SPAN.exec(sentence) ?? [];
  if (amount !== undefined) {
    const signed = isPast === undefined ? Number(amount) : -Number(amount);
    return { action: "add", ...from, [`${unit.toLowerCase()}s`]: signed };
  }
  if (first !== undefined) return { action: "weekday", date: first };
  if (/\btomorrow\b/i.test(sentence)) return { action: "add", days: 1 };
  if (/\byesterday\b/i.test(sentence)) return { action: "add", days: -1 };
  return { action: "today" };
}

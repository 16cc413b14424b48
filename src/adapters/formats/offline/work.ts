/** The kinds of work that the offline model knows: who does each, and the verbs that ask for it. */

const WORK: readonly { name: string; verbs: string }[] = [
  { name: "researcher", verbs: "research|investigate|look into|find out|compare" },
  { name: "architect", verbs: "plan|design|sketch" },
  {
    name: "developer",
    verbs: "build|implement|develop|code|create|make|write|program|fix|change|improve|work on",
  },
  { name: "reviewer", verbs: "review|check|test|audit" },
];

export const VERB = `(?:${WORK.map(({ verbs }) => verbs).join("|")})`;

/** Texts that are no work for a team: "a haiku about autumn". */
export const PROSE =
  /^(?:an?|the|some|my|our|one|two|three)?\s*(?:[\w-]+\s+){0,2}(?:haikus?|poems?|poetry|sonnets?|limericks?|verses?|rhymes?|songs?|lyrics|stor(?:y|ies)|tales?|jokes?|puns?|riddles?|letters?|e-?mails?|essays?|speech(?:es)?|toasts?|recipes?|tweets?|cards?|quotes?|postcards?)\b(?!\s+(?:app|page|form|component|parser|service|server|api|table|view|editor)\b)/i;

/** Matches the verb at the beginning of a request. */
export const VERB_BEFORE = new RegExp(String.raw`^${VERB}\s+(?:(?:me|us|about)\s+)?`, "i");

/** Returns who does the work of a verb in lower case. */
export function workerOf(verb: string): string {
  return WORK.find(({ verbs }) => verbs.split("|").includes(verb))?.name ?? "";
}

/** English words without a meaning of their own. Queries drop them, unless only such words remain. */

/** Includes the parts of contractions such as "don't" and "we'll", split at the apostrophe. */
const FUNCTION_WORDS: ReadonlySet<string> = new Set(
  `a about above after again against all also am an and any anybody anyone anything are aren as at be because been before being below between both
  but by can cannot could couldn d did didn do does doesn doing don down during each everybody everyone everything few for from further had hadn has hasn
  have haven having he hello her here hey hi hers herself him himself his how i if in into is isn it its itself just ll m me more most
  mustn my myself no nobody nor not nothing now of off ok okay on once only or other our ours ourselves out over own please re s same shan she should
  shouldn so some somebody someone something such t than thank thanks that the their theirs them themselves then there these they this those through to too under
  until up upon us ve very was wasn we were weren what when where which while who whom whose why will with won would wouldn
  you your yours yourself yourselves`.split(/\s+/),
);

export function isFunctionWord(word: string): boolean {
  return FUNCTION_WORDS.has(word);
}

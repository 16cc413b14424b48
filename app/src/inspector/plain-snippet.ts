/**
 * Snippets of messages without the signs of Markdown. Pure.
 *
 * SNIPPET-1  Each found word stays, and stays marked. Only signs between the words leave.
 */
import type { FoundMessage } from "../../../src/client/index.ts";

/** Fences, the signs before a line, pairs around words, and links, which keep their text. */
const SIGNS = /```[\w-]*|(?<=^…?) {0,3}(?:#{1,6} |> ?|[-*+] )|\*\*|__|`|!?\[(?=[^\]\n]*\]\()|\]\([^)\s]*\)/gm;

export function plainSnippet({
  snippet,
  marks,
}: Pick<FoundMessage, "snippet" | "marks">): Pick<FoundMessage, "snippet" | "marks"> {
  const cuts = [...snippet.matchAll(SIGNS)]
    .map(({ 0: text, index }) => [index, index + text.length] as const)
    .filter(([from, to]) => !marks.some(([begin = 0, end = 0]) => begin < to && from < end));
  const moved = (place: number) =>
    place - cuts.reduce((sum, [from, to]) => sum + Math.max(0, Math.min(place, to) - from), 0);
  let text = "";
  let at = 0;
  for (const [from, to] of cuts) {
    text += snippet.slice(at, from);
    at = to;
  }
  return {
    snippet: text + snippet.slice(at),
    marks: marks.map(([begin = 0, end = 0]) => [moved(begin), moved(end)]),
  };
}

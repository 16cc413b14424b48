/** Searches the files of a tree for a text or a regular expression. Pure. */
import { RE2JS } from "re2js";
import { decodeText } from "../../../git/bytes.ts";
import { errorText, invalid, notFound } from "../../../shared/errors.ts";
import { shorten } from "../../../shared/text.ts";
import type { WorkingTree } from "./working-tree.ts";

export interface SearchOptions {
  /** A text, or a regular expression in the syntax of RE2 with `isRegex`. */
  query: string;
  isRegex?: boolean;
  ignoreCase?: boolean;
  /** A file or a folder; by default the whole tree. */
  path?: string;
  limit: number;
}

export interface FoundLine {
  path: string;
  line: number;
  text: string;
}

const MAX_PATTERN = 500;
/** Bytes of files that one search reads. */
const MAX_BYTES = 16 * 1024 * 1024;
/** The size of a compiled pattern, and its product with the searched bytes. The product bounds the time of a search. */
const [MAX_PROGRAM, MAX_WORK] = [500, 30_000_000];
/** Characters of a line that a regular expression sees, and characters of a line in the result. */
const [MAX_LINE, MAX_SHOWN] = [2_000, 300];

/** Returns matching lines in the order of the paths. `cut` says why files were left out; binary files never match. */
export async function searchTree(
  tree: WorkingTree,
  { query, isRegex = false, ignoreCase = false, path = "", limit }: SearchOptions,
): Promise<{ matches: FoundLine[]; cut?: string }> {
  const { isMatch, cost } = matcher(query, isRegex, ignoreCase);
  const maxBytes = Math.min(MAX_BYTES, Math.floor(MAX_WORK / cost));
  const paths = tree.entry(path) === undefined ? tree.paths(path) : [path];
  if (paths.length === 0 && path !== "") throw notFound(`There is no file or folder "${path}".`);
  const matches: FoundLine[] = [];
  let bytes = 0;
  for (const each of paths) {
    if (tree.entry(each)?.mode === "120000") continue;
    const { content } = await tree.file(each);
    bytes += content.byteLength;
    if (bytes > maxBytes)
      return {
        matches,
        cut: `The search stopped at "${each}", after ${maxBytes} bytes. Name a folder${isRegex ? ", or search for a text" : ""}.`,
      };
    const text = decodeText(content);
    if (text === undefined) continue;
    for (const [index, line] of text.split("\n").entries()) {
      if (!isMatch(line)) continue;
      if (matches.length === limit)
        return {
          matches,
          cut: `There are more than ${limit} matches. Name a folder, or search for more text.`,
        };
      matches.push({ path: each, line: index + 1, text: shorten(line, MAX_SHOWN) });
    }
  }
  return { matches };
}

interface Matcher {
  isMatch(line: string): boolean;
  /** The steps for each character. */
  cost: number;
}

function matcher(query: string, isRegex: boolean, ignoreCase: boolean): Matcher {
  if (query === "") throw invalid("The search is empty. Give a text.");
  if (!isRegex) {
    const wanted = ignoreCase ? query.toLowerCase() : query;
    return { isMatch: (line) => (ignoreCase ? line.toLowerCase() : line).includes(wanted), cost: 1 };
  }
  if (query.length > MAX_PATTERN)
    throw invalid(`The regular expression has more than ${MAX_PATTERN} characters.`);
  const pattern = compiled(query, ignoreCase);
  const cost = pattern.programSize();
  if (cost > MAX_PROGRAM)
    throw invalid("The regular expression takes too many steps. Use smaller repetitions.");
  return { isMatch: (line) => pattern.matcher(line.slice(0, MAX_LINE)).find(), cost };
}

function compiled(query: string, ignoreCase: boolean): RE2JS {
  try {
    return RE2JS.compile(query, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
  } catch (error) {
    throw invalid(`The regular expression is not valid: ${errorText(error)}`);
  }
}

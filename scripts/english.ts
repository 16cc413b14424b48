/**
 * `npm run english -- [--worst N] [--limit N] [FILE|FOLDER…]`: counts turns of phrase that make technical English hard to read, per 1,000 words of
 * prose. Prose is Markdown outside code, comments, and messages and JSX texts of at least five words. A hit is a place to look at, not a
 * verdict.
 *
 * Without paths it counts the folders of `LIMITS`.
 *
 * ENGLISH-1  Code, inline code and the numbers of rules are not prose. A sentence counts a phrase each time it occurs.
 * ENGLISH-2  Above its limit, a path fails. The output names its count and its worst sentences.
 */
import { globSync, readFileSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { parseArgs } from "node:util";

/** Maximum number of hard phrases per 1,000 words. A new text keeps its folder below the limit; lower a limit after an improvement. */
const LIMITS: Readonly<Record<string, number>> = {
  "README.md": 2,
  "CHANGELOG.md": 3,
  "CONTRIBUTING.md": 3,
  docs: 2,
  src: 3,
  app: 2,
  scripts: 5,
  examples: 5,
  bench: 2,
  test: 3,
};

/** Words in a sentence that count as too many. */
const LONG = 30;
/** Words in a string literal or a JSX text that make it a message. */
const MESSAGE = 5;

const PHRASES: readonly RegExp[] = [
  // A pronoun in place of a noun: `the older one`.
  /\b(?:the|this|that|each|another|any|an?|older|newer|first|last|other|such|no|which|new|old|same|next|later|earlier|present|former|every|only|right|wrong|whole|single|own)\s+ones?\b(?!\s+(?:or more|of the|row|statement|request|call|commit|transaction|time|second|minute|day|turn|line|word|place|file|name))/gi,
  /\b(?:one that|ones|one's)\b/gi,
  // A clause in place of a noun: `it keeps what was said`.
  /\b(?:of|to|for|with|by|from|in|on|at|and|is|are|was|than|as|about|after|before|like|but|or|keeps?|sees?|reads?|says?|knows?|has|have|had|gets?|shows?|means?|takes?|gives?|uses?|lists?|counts?|made|does|do|did)\s+what\b(?![^.]*\?)/gi,
  /(?:^|[.;:]\s+)What\b(?![^.]*\?)/g,
  // `Where` for `if`.
  /(?:^|[.;:,(]\s*)[Ww]here\s+(?:it|they|there|none|no|nobody|nothing|a|an|the|one|somebody|several|that|its|both|this|such|some|only|all|code|people)\b/g,
  // A negation in place of the fact.
  /\b(?:nobody|nothing|none|no one|neither|nor|nowhere)\b/gi,
  // Relative clauses.
  /\b(?:of|to|in|from|by|with|for|at|on|behind|beside|after|before|under|over|through|without) (?:which|whom)\b/gi,
  /\b(?:whose|thereof|thereby|hereby|wherein|whereby|thereupon)\b/gi,
  // Verbs of speech for data.
  /\b(?:is|are|was|were|be|been|being) (?:told|said|heard|asked for)\b|\btold of\b|\bsays? so\b|\bknows? of\b|\bspeaks? of\b/gi,
  /\b(?:that|those|these) of\b|\bthose (?:that|who|which)\b|\bthat which\b|\bsuch as are\b/gi,
  // Quaint verbs and adverbs.
  /\b(?:go|goes|went|going|gone) on\b|\bcomes? (?:back|to it|again|of it|in its place)\b|\bstands? (?:in|at|beside|behind|above|below|alone|there|as|elsewhere|twice)\b|\blies? (?:within|in|with|before)\b|\bin the place of\b|\bin its place\b|\btake (?:its|their|the) place\b|\bat work\b|\bby itself\b|\bof itself\b|\bis due to\b|\bbears?\b|\bbegets?\b/gi,
  /\b(?:besides|meanwhile|hence|thus|thereafter|anew|else the|else it|likewise|as well as that)\b/gi,
  // Inversions.
  /(?:^|[.;]\s+)(?:So (?:is|are|does|do|has|have|was|were|it is)\b|Nor\b|Only (?:then|so|here)\b|Not (?:so|even)\b|Gone\b|Of (?:a|an|the|those|these|one|all|what)\b|To (?:a|an|the) [a-z]+ (?:goes|belongs|comes)\b|From (?:then|there|it) )/g,
  /\b(?:is|are|was|were) to (?:be|have|do|come|go|begin|end|take|run|wait)\b|\bhas to be\b/gi,
];

export interface EnglishCount {
  words: number;
  hits: number;
  /** Sentences with a hit, the worst first. */
  hard: { file: string; sentence: string; weight: number }[];
}

/** Returns the prose of a file: Markdown, or comments and messages of code (ENGLISH-1). */
function proseOf(file: string, text: string): string {
  return extname(file) === ".md" ? markdownProse(text) : `${comments(text)}\n\n${messages(file, text)}`;
}

function markdownProse(text: string): string {
  return text
    .replace(/```[\s\S]*?```/g, "\n\n")
    .replace(/<[^>\n]*>/g, " ")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/`[^`\n]*`/g, "X")
    .replace(/^\s*\|?[-:| ]+\|?\s*$/gm, "")
    .replace(/\|/g, ". ")
    .replace(/^#+ .*$/gm, (heading) => `${heading}.\n`)
    .replace(/[*_]{1,2}/g, "");
}

function comments(text: string): string {
  const found = [...text.matchAll(/\/\*\*?([\s\S]*?)\*\/|(?:^|\s)\/\/ ?(.*)$/gm)];
  return found
    .map(([, block, line]) =>
      (block ?? line ?? "")
        .replace(/^\s*\* ?/gm, "")
        .replace(/@example[\s\S]*?(?=\n\s*@|$)/g, "")
        .replace(/^@\w+/gm, "")
        .replace(/`[^`\n]*`/g, "X")
        .replace(/^ {0,2}[A-Z][A-Z0-9]+-\d+\s+/gm, ""),
    )
    .join("\n\n");
}

function messages(file: string, text: string): string {
  if (file.includes("test")) return "";
  const code = text.replace(/\/\*[\s\S]*?\*\//g, "");
  const literals = code.matchAll(/"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g);
  const elements = file.endsWith(".tsx") ? code.matchAll(/>\s*([A-Z][^<>{}=;]*)[<{]/g) : [];
  return [...literals, ...elements]
    .map(([, quoted, template]) =>
      (quoted ?? template ?? "").replace(/\$\{[^}]*\}/g, "X").replace(/`[^`]*`/g, "X"),
    )
    .filter((literal) => {
      const isSql = /^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|PRAGMA|WITH|ALTER)\b/.test(literal);
      const isStyle = /\b(?:flex|grid|rounded|px-\d|text-sm)\b/.test(literal);
      const words = literal.split(/\s+/).filter((word) => /^[A-Za-z,.;:'"()-]+$/.test(word));
      return !isSql && !isStyle && words.length >= MESSAGE;
    })
    .join("\n\n");
}

function sentencesOf(prose: string): string[] {
  return prose
    .replace(/\n\s*[-*] /g, ".\n")
    .split(/\n\s*\n|(?<=[.!?])\s+(?=[A-Z"'(X])/)
    .map((sentence) => sentence.replace(/\s+/g, " ").trim())
    .filter((sentence) => sentence.split(" ").length >= 3 && !/^@|^(?:SAFETY|biome)/.test(sentence));
}

/** Counts the hard phrases of texts. */
export function countEnglish(texts: Iterable<readonly [file: string, text: string]>): EnglishCount {
  const count: EnglishCount = { words: 0, hits: 0, hard: [] };
  for (const [file, text] of texts)
    for (const sentence of sentencesOf(proseOf(file, text))) {
      const words = sentence.split(" ").length;
      const phrases = PHRASES.reduce((sum, phrase) => sum + (sentence.match(phrase)?.length ?? 0), 0);
      const hits = phrases + (words > LONG ? 1 : 0);
      count.words += words;
      count.hits += hits;
      if (hits > 0) count.hard.push({ file, sentence, weight: hits / Math.sqrt(words) });
    }
  count.hard.sort((a, b) => b.weight - a.weight);
  return count;
}

/** Returns hard phrases per 1,000 words. */
export function rateOf({ words, hits }: EnglishCount): number {
  return words === 0 ? 0 : (1_000 * hits) / words;
}

/** Counts the files below a path, without generated pages. */
export function countPath(root: string, path: string): EnglishCount {
  const files = statSync(join(root, path)).isFile()
    ? [path]
    : globSync(`${path}/**/*.{ts,tsx,md}`, { cwd: root }).map((file) => file.replaceAll("\\", "/"));
  const GENERATED = /node_modules|\/dist\/|docs\/(?:spec|capabilities)\.md$/;
  return countEnglish(
    files
      .filter((file) => !GENERATED.test(file))
      .map((file) => [file, readFileSync(join(root, file), "utf8")] as const),
  );
}

/** Prints the counts. Returns whether each folder is within its limit. */
function main(): boolean {
  const { values, positionals } = parseArgs({
    options: { worst: { type: "string", default: "0" }, limit: { type: "string" } },
    allowPositionals: true,
  });
  const root = positionals.length > 0 ? process.cwd() : join(import.meta.dirname, "..");
  let isWithin = true;
  for (const path of positionals.length > 0 ? positionals : Object.keys(LIMITS)) {
    const count = countPath(root, path);
    const limit = values.limit === undefined ? LIMITS[path] : Number(values.limit);
    const isAbove = limit !== undefined && rateOf(count) > limit;
    isWithin &&= !isAbove;
    const against = limit === undefined ? "" : `, limit ${limit}`;
    console.log(
      `${path}: ${rateOf(count).toFixed(1)} hard phrases per 1,000 words (${count.words} words${against})`,
    );
    for (const { file, sentence } of count.hard.slice(0, isAbove ? 20 : Number(values.worst)))
      console.log(`- ${file}: ${sentence.slice(0, 300)}`);
  }
  return isWithin;
}

if (import.meta.main && !main()) process.exitCode = 1;

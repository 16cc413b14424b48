/**
 * The colours of code. The highlighter is a chunk of its own: a page loads it with its first block of code.
 *
 * COLOUR-1  Some code stays plain, so that no block stops the page: code of more than 5,000 characters, with a line of more than 500, or
 *           with a run of more than 200 that are all white space or all other characters. Patterns of the highlighter take quadratic time
 *           on these.
 * COLOUR-2  Blocks get their colours one after another, and the page continues between two blocks. A block that has left gets none.
 */
import { type ShjLanguage, type ShjToken, tokenize } from "@speed-highlight/core";

/** A piece of code of one kind. */
export interface CodePiece {
  text: string;
  kind: ShjToken | undefined;
}

const MAX_COLOURED = 5_000;
const COSTLY = /.{501}|\S{201}|\s{201}/;

const LANGUAGES = new Map<string, ShjLanguage>([
  ...(
    [
      ...[
        "bash",
        "c",
        "css",
        "csv",
        "diff",
        "docker",
        "go",
        "html",
        "http",
        "ini",
        "java",
        "js",
        "json",
        "lua",
        "make",
      ],
      ...["md", "pl", "py", "rs", "sql", "toml", "ts", "xml", "yaml"],
    ] as ShjLanguage[]
  ).map((name): [string, ShjLanguage] => [name, name]),
  ...([
    ["sh", "bash"],
    ["shell", "bash"],
    ["zsh", "bash"],
    ["console", "bash"],
    ["javascript", "js"],
    ["jsx", "js"],
    ["mjs", "js"],
    ["typescript", "ts"],
    ["tsx", "ts"],
    ["python", "py"],
    ["rust", "rs"],
    ["golang", "go"],
    ["markdown", "md"],
    ["yml", "yaml"],
    ["jsonc", "json"],
    ["dockerfile", "docker"],
    ["svg", "xml"],
    ["cpp", "c"],
    ["kotlin", "java"],
    ["patch", "diff"],
  ] as [string, ShjLanguage][]),
]);

/** Ends when the last block has its colours. */
let last: Promise<unknown> = Promise.resolve();

/**
 * Returns the pieces of a code (COLOUR-2); `undefined` for an unknown language, for costly code (COLOUR-1), and after an abort. Their texts
 * together are the code.
 */
export function piecesOf(
  code: string,
  language: string,
  signal?: AbortSignal,
): Promise<CodePiece[] | undefined> {
  const known = LANGUAGES.get(language.toLowerCase());
  if (known === undefined || code.length > MAX_COLOURED || COSTLY.test(code))
    return Promise.resolve(undefined);
  const found = last.then(async () => {
    if (signal?.aborted) return undefined;
    await new Promise((resolve) => setTimeout(resolve));
    return coloured(code, known);
  });
  last = found.catch(() => undefined);
  return found;
}

async function coloured(code: string, language: ShjLanguage): Promise<CodePiece[] | undefined> {
  const pieces: CodePiece[] = [];
  await tokenize(code, language, (text, kind) => pieces.push({ text, kind }));
  return pieces.map(({ text }) => text).join("") === code ? pieces : undefined;
}

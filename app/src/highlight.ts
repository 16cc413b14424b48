/** The colours of code. The highlighter is a chunk of its own: a page loads it with its first block of code. */
import { type ShjLanguage, type ShjToken, tokenize } from "@speed-highlight/core";

/** A piece of code of one kind. */
export interface CodePiece {
  text: string;
  kind: ShjToken | undefined;
}

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

/** Returns the pieces of a code; `undefined` for an unknown language. Their texts together are the code. */
export async function piecesOf(code: string, language: string): Promise<CodePiece[] | undefined> {
  const known = LANGUAGES.get(language.toLowerCase());
  if (known === undefined) return undefined;
  const pieces: CodePiece[] = [];
  await tokenize(code, known, (text, kind) => pieces.push({ text, kind }));
  return pieces.map(({ text }) => text).join("") === code ? pieces : undefined;
}

/** Reads the shell commands and the JSON of Markdown pages, so that tests can check them without a server. */

/** A command: its name and its words, without quotes. */
export type ShellCommand = readonly string[];

/** Words of a shell: comments, line ends, operators, and words with quoted parts. */
const TOKEN =
  /(^|\s)#[^\n]*|\n|&&|\|\||[|;&]|\$\(|\)|(?:'[^']*'|"(?:\\[\s\S]|[^"\\])*"|\\[\s\S]|\$(?!\()|[^\s'"\\|;&()$#]|(?<=\S)#)+(?:\(\))?/g;

/** Words before a command. */
const BEFORE = new Set(["do", "while", "{", "export"]);

/** Returns the commands of a block, also within `$(…)`, loops and functions. */
export function commandsIn(text: string): ShellCommand[] {
  const commands: string[][] = [[]];
  for (const [token] of text.replaceAll("\\\n", " ").matchAll(TOKEN)) {
    if (/^\s*#/.test(token)) continue;
    if (/^(?:\n|&&|\|\||[|;&]|\$\(|\))$/.test(token)) commands.push([]);
    else commands.at(-1)?.push(unquoted(token));
  }
  return commands.map(withoutStart).filter((words) => words.length > 0);
}

/** Returns the words from the command's name on. */
function withoutStart(words: string[]): string[] {
  const start = words.findIndex((word) => !BEFORE.has(word) && !/^\w+(?:=|\(\)$)/.test(word));
  return start === -1 || words[start] === "}" || words[start] === "done" ? [] : words.slice(start);
}

function unquoted(word: string): string {
  return word.replaceAll(
    /'([^']*)'|"((?:\\[\s\S]|[^"\\])*)"/g,
    (_, single?: string, double = "") => single ?? double.replaceAll(/\\(["$\\])/g, "$1"),
  );
}

/** Returns the values of variables that a block sets to plain texts. */
export function variablesIn(text: string): Map<string, string> {
  return new Map(
    [...text.matchAll(/^(\w+)=([\w./:…]+)$/gm)].map(([, name = "", value = ""]) => [name, value]),
  );
}

/** Parses JSON in which `…` stands for values or members that are left out. Throws `SyntaxError`. */
export function parseAbridged(text: string): unknown {
  const strings: string[] = [];
  const complete = text
    .replaceAll(/"(?:\\.|[^"\\])*"/g, (string) => `"${strings.push(string) - 1}"`)
    .replaceAll(/(?<=[[{])\s*…|,\s*…(?=\s*[}\],])/g, "")
    .replaceAll(/…/g, "null")
    .replaceAll(/"(\d+)"/g, (_, index: string) => strings[Number(index)] ?? "");
  return JSON.parse(complete);
}

/** The methods of actors that other actors call. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const AGENTS = join(import.meta.dirname, "../../src/agents");
/** A class with RPC methods. */
const ACTOR = /\bclass \w+[^{}]*\sextends (?:DurableActor|SessionAgent|\w+Agent|\w+Conversation)\b/;
/** A public method that is no async function. Classes within functions are indented. */
const METHOD =
  /^ {2}(?: {2})?(?!if\b|for\b|while\b|switch\b|constructor\b)([a-z]\w*)(?:<[^>]*>)?\((?:[^()]|\([^()]*\))*\)(?:: [^={]+)? \{$/gm;

test("AGENT-5 the public methods of actors are async, except those for use inside of the actor", () => {
  const files = globSync("**/*.ts", { cwd: AGENTS })
    .map((file) => readFileSync(join(AGENTS, file), "utf8"))
    .flatMap((code) => (ACTOR.test(code) ? [code.slice(code.search(ACTOR)).split("\n}\n")[0] ?? ""] : []));
  expect(files.length).toBeGreaterThan(8);
  const names = files.flatMap((code) => [...code.matchAll(METHOD)].map(([, name]) => name));
  expect(names.sort()).toEqual(["buildWorkingContext", "persistWorkingContext"]);
});

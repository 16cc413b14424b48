/** Recorded streams of real providers, from the folder of data. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ProviderId } from "../../src/model/profile.ts";

export interface Recording {
  /** The file, below the folder of recordings. */
  name: string;
  provider: ProviderId;
  /** The payload of each server-sent event; one of a reply that was not streamed. */
  payloads: string[];
}

/** `DRAMATIS_DATA`, or the folder beside the checkout. */
const DATA = process.env.DRAMATIS_DATA ?? join(import.meta.dirname, "../../../shared/data");

const ROOT = join(DATA, "provider-streams");

const PROVIDERS: readonly [folder: RegExp, provider: ProviderId][] = [
  [/^anthropic\//, "anthropic"],
  [/^openai\/chat\//, "openai"],
  [/^openai\/responses\//, "openai-responses"],
  // The Interactions API of the same provider is another protocol.
  [/^google\/(?!interactions\/)/, "gemini"],
];

export function recordings(): Recording[] {
  if (!existsSync(ROOT)) throw new Error(`There is no folder ${ROOT}. Name yours in DRAMATIS_DATA.`);
  return globSync("**/*.{txt,json}", { cwd: ROOT })
    .sort()
    .flatMap((name) => {
      const provider = PROVIDERS.find(([folder]) => folder.test(name))?.[1];
      if (provider === undefined) return [];
      const text = readFileSync(join(ROOT, name), "utf8");
      // A reply that was not streamed is one payload, on one line as on the wire.
      const payloads = name.endsWith(".json")
        ? [JSON.stringify(JSON.parse(text))]
        : text.split("\n").filter((line) => line.trim() !== "");
      return [{ name, provider, payloads }];
    });
}

/** `npm run figures`: prints the size and the structure of `src`, the English of `src`, docs and README, and the sizes of the bundles. */
import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { rolldown } from "rolldown";
import { countPath, rateOf } from "./english.ts";

const ROOT = join(import.meta.dirname, "..");
const IMPORT = /(?:from|import|import\() ?"(\.{1,2}\/[^"]+)"/g;
/** Names without a subject. */
const VAGUE = /^(?:limits|schema|parts|types|utils|helpers)\.ts$/;

const sources = new Map(
  globSync("src/**/*.{ts,tsx}", { cwd: ROOT }).map((file) => [
    file.replaceAll("\\", "/"),
    readFileSync(join(ROOT, file), "utf8"),
  ]),
);

/** Counts the matches of a pattern in all of `src`. */
function count(pattern: RegExp): number {
  return [...sources.values()].reduce((sum, text) => sum + (text.match(pattern)?.length ?? 0), 0);
}

/** Returns the importers of each file. */
function importers(): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const [file, text] of sources)
    for (const [, path = ""] of text.matchAll(IMPORT)) {
      const target = normalize(join(dirname(file), path));
      const known = found.get(target) ?? new Set();
      found.set(target, known.add(file));
    }
  return found;
}

/** Returns the size of a minified bundle in bytes, without the modules that the platform or the application provides. */
async function bundleSize(entry: string, platform: "browser" | "node"): Promise<number> {
  const build = await rolldown({
    ...{ input: join(ROOT, entry), platform, logLevel: "silent" },
    external: /^(?:cloudflare:|node:|agents(?:\/|$)|react(?:\/|$)|ai(?:\/|$)|@ai-sdk\/)/,
  });
  const { output } = await build.generate({ format: "esm", minify: true, codeSplitting: false });
  await build.close();
  return output.reduce((sum, chunk) => sum + (chunk.type === "chunk" ? chunk.code.length : 0), 0);
}

const lines = [...sources.values()].reduce((sum, text) => sum + text.split("\n").length - 1, 0);
const single = [...importers().values()].filter((files) => files.size === 1).length;
const long = [...sources.values()].filter((text) => text.split("\n").length > 401).length;
const rows: [figure: string, value: number | string][] = [
  ["Lines of src", lines],
  ["Files of src", sources.size],
  ["Files with a single importer", single],
  ["Files above 400 lines", long],
  ["Schemas that repeat an interface (`z.ZodType<`)", count(/: z\.ZodType</g)],
  ["`*Ports` types", count(/^\s*(?:export )?(?:interface|type) [A-Za-z]*Ports\b[^,}]/gm)],
  ["Files with a vague name", [...sources.keys()].filter((file) => VAGUE.test(basename(file))).length],
  ...(["src", "docs", "README.md"] as const).map((path): [string, string] => [
    `Hard phrases per 1,000 words of ${path}`,
    rateOf(countPath(ROOT, path)).toFixed(1),
  ]),
  ["Minified bundle of src/index.ts, in bytes", await bundleSize("src/index.ts", "node")],
  ["Minified bundle of src/client/index.ts, in bytes", await bundleSize("src/client/index.ts", "browser")],
];
for (const [figure, value] of rows) console.log(`${String(value).padStart(9)}  ${figure}`);

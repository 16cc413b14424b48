/** Builds the measured Worker into one directory of modules that plain workerd can serve. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { runCommand } from "./command.ts";
import { BENCH_DIR, WRANGLER_SCRIPT } from "./paths.ts";

const configSchema = z.object({
  compatibility_date: z.string(),
  compatibility_flags: z.array(z.string()).default([]),
  migrations: z.array(z.object({ new_sqlite_classes: z.array(z.string()) })),
  durable_objects: z
    .object({ bindings: z.array(z.object({ name: z.string(), class_name: z.string() })) })
    .default({ bindings: [] }),
  services: z.array(z.object({ binding: z.string(), entrypoint: z.string() })).default([]),
});

/** The part of the Worker's configuration that workerd needs. */
export type WorkerConfig = z.infer<typeof configSchema>;

export interface Bundle {
  config: WorkerConfig;
  /** Absolute path of the entry module. */
  entry: string;
}

/** The mail module exists only on the platform. The benchmarks send no mail. */
const EMAIL_IMPORT = /^import \{ EmailMessage(?: as (\w+))? \} from "cloudflare:email";$/gm;

/** Builds the Worker of a wrangler configuration in plain JSON. */
export async function buildBundle(directory: string, wranglerConfig: string): Promise<Bundle> {
  const args = [WRANGLER_SCRIPT, "deploy", "--dry-run", "--outdir", directory, "--config", wranglerConfig];
  await runCommand(process.execPath, args, { cwd: BENCH_DIR, env: { WRANGLER_SEND_METRICS: "false" } });
  const modules = (await readdir(directory)).filter((file) => !/\.(map|md)$/.test(file));
  const [main, ...others] = modules;
  if (main === undefined || others.length > 0) {
    throw new Error(`Expected one module in the bundle, found ${modules.join(", ")}.`);
  }
  const entry = join(directory, main);
  const code = await readFile(entry, "utf8");
  await writeFile(
    entry,
    code.replace(EMAIL_IMPORT, (_, alias?: string) => `class ${alias ?? "EmailMessage"} {}`),
  );
  return { config: configSchema.parse(JSON.parse(await readFile(wranglerConfig, "utf8"))), entry };
}

/**
 * Checks the files of a project: the configuration of wrangler and the module of the Worker.
 *
 * DOCTOR-1  Each broken configuration is reported with its place and the change that mends it, without wrangler.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { similarId } from "../shared/known-ids.ts";
import { inputIssues, issuesText } from "../shared/validation.ts";
import {
  failed,
  isSecret,
  localVariables,
  modelProblems,
  type ProjectProblem,
  type Read,
  type Variables,
  valuesOf,
  variableProblems,
  versionProblems,
  warning,
} from "./project-setup.ts";

const CONFIG = "wrangler.jsonc";
const ACTORS = ["Conversation", "Agent", "Coordinator", "Trigger", "Channel", "EventLog", "Workspace"];
/** The exports that every Worker needs. */
const REQUIRED = ["Conversation", "Agent", "Executor"];
const OLDEST_DATE = "2025-11-17";
/** From this date on, `nodejs_compat` needs no flag. */
const NODE_DATE = "2026-08-04";
/** The paths of the server beside static files. */
const ROUTES = [
  ...["/health", "/api/*", "/conversations/*", "/agents/*", "/v1/*", "/agui/*", "/a2a/*", "/git/*", "/mcp"],
  ...["/.well-known/oauth-protected-resource/*", "/openapi.json"],
];
/** Bases of the classes that need a migration. */
const ACTOR_CLASS = new RegExp(
  String.raw`\bclass\s+(\w+)\s+extends\s+(?:SessionAgent|DurableObject|\w+\.(?:${ACTORS.join("|")}))\b`,
  "g",
);
/** The settings with bindings. An environment does not inherit them. */
const BINDINGS = ["d1_databases", "r2_buckets", "ai"] as const;

const names = z.array(z.string()).default([]);
const bindings = z.array(z.looseObject({ binding: z.string() })).default([]);
const configSchema = z.looseObject({
  main: z.string().optional(),
  compatibility_date: z.string().optional(),
  compatibility_flags: names,
  migrations: z
    .array(
      z.looseObject({
        tag: z.string(),
        new_sqlite_classes: names,
        new_classes: names,
        renamed_classes: z.array(z.looseObject({ from: z.string(), to: z.string() })).default([]),
        deleted_classes: names,
      }),
    )
    .default([]),
  d1_databases: bindings,
  r2_buckets: bindings,
  ai: z.looseObject({}).optional(),
  env: z.record(z.string(), z.looseObject({})).default({}),
  assets: z
    .looseObject({
      directory: z.string().optional(),
      binding: z.string().optional(),
      not_found_handling: z.string().optional(),
      run_worker_first: z.union([z.boolean(), z.array(z.string())]).default([]),
    })
    .optional(),
  vars: z.record(z.string(), z.unknown()).default({}),
});
type Config = z.output<typeof configSchema>;

function readIn(folder: string, path: string): string | null {
  const file = join(folder, path);
  return statSync(file, { throwIfNoEntry: false })?.isFile() ? readFileSync(file, "utf8") : null;
}

/** The path of the Worker's module in its project, and the variables of the Worker on this machine. */
export interface WorkerModule {
  main: string;
  variables: Record<string, string>;
}

/**
 * Returns the problems of the project in a folder, and the module of its Worker; `null` if the folder has no project of Dramatis. The module
 * is absent if the configuration is not valid, or names no file.
 */
export function checkProject(
  folder: string,
  node = process.versions.node,
): { problems: ProjectProblem[]; worker?: WorkerModule } | null {
  const read = (path: string) => readIn(folder, path);
  if (!/"dramatis"\s*:/.test(read("package.json") ?? "")) return null;
  const config = readConfig(read);
  const local = localVariables(read);
  const isRead = !Array.isArray(config);
  const variables: Variables = new Map([...(isRead ? deployedVariables(config) : []), ...local]);
  const problems = [
    ...(isRead ? configProblems(config, folder, read, local) : config),
    ...variableProblems(folder, read, local),
    ...modelProblems(variables, CONFIG),
    ...versionProblems(folder, node),
  ];
  const main = isRead ? config.main : undefined;
  if (main === undefined || read(main) === null) return { problems };
  return { problems, worker: { main, variables: valuesOf(variables) } };
}

function deployedVariables({ vars }: Config): Variables {
  return new Map(
    Object.entries(vars).map(([name, value]) => [
      name,
      { value: typeof value === "string" ? value : JSON.stringify(value), file: CONFIG },
    ]),
  );
}

const quoted = (list: readonly string[]) => list.map((name) => `"${name}"`).join(", ");

/** Returns the value of JSON with comments and trailing commas. Throws `SyntaxError`. */
function parseJsonc(text: string): unknown {
  const strings = String.raw`"(?:\\.|[^"\\])*"`;
  const without = (from: string, part: string) =>
    from.replace(new RegExp(`(${strings})|${part}`, "g"), (_, kept) => kept ?? "");
  const json = without(text, String.raw`//[^\n]*|/\*[\s\S]*?\*/`);
  return JSON.parse(without(json, String.raw`,(?=\s*[}\]])`));
}

/** Returns the configuration, or its problems if it cannot be read. */
function readConfig(read: Read): Config | ProjectProblem[] {
  const text = read(CONFIG) ?? read("wrangler.json");
  if (text === null)
    return [
      read("wrangler.toml") === null
        ? failed(`${CONFIG} is missing. Copy it from a new project: npx dramatis init ../new-project`)
        : warning(`The doctor does not read wrangler.toml. Write the configuration as ${CONFIG}.`),
    ];
  try {
    const parsed = configSchema.safeParse(parseJsonc(text));
    if (parsed.success) return parsed.data;
    return [failed(`${CONFIG} is not valid: ${issuesText(inputIssues(parsed.error))}`)];
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return [failed(`${CONFIG} is not valid JSON: ${error.message}. Correct this place.`)];
  }
}

function configProblems(config: Config, folder: string, read: Read, local: Variables): ProjectProblem[] {
  const { main } = config;
  const code = main === undefined ? null : read(main);
  return [
    ...(main === undefined
      ? [failed(`${CONFIG}: Add "main": "src/worker.ts", the module of the Worker.`)]
      : []),
    ...(main !== undefined && code === null
      ? [failed(`${CONFIG}: "main" is ${main}, but this file does not exist. Write the path of your Worker.`)]
      : []),
    ...dateProblems(config),
    ...classProblems(config, code, main, read),
    ...bindingProblems(config),
    ...environmentProblems(config),
    ...assetProblems(config, folder),
    ...accessProblems(config, code ?? "", read, local),
    ...Object.entries(config.vars).flatMap(([name, value]) => {
      if (isSecret(name, value))
        return [
          failed(
            `${CONFIG}: "vars" contains ${name}, so everybody who can read the repository has it. Move it to .dev.vars, and run: npx wrangler secret put ${name}`,
          ),
        ];
      if (name !== "DRAMATIS_LOCAL") return [];
      return [
        failed(
          `${CONFIG}: "vars" contains DRAMATIS_LOCAL, which is for your own machine only. Move it to .dev.vars.`,
        ),
      ];
    }),
  ];
}

function dateProblems({
  compatibility_date: date = "",
  compatibility_flags: flags,
}: Config): ProjectProblem[] {
  const set = `Set "compatibility_date": "2026-08-15".`;
  const experimental = flags.filter((flag) => flag === "experimental" || flag === "enable_abortsignal_rpc");
  return [
    ...(date < OLDEST_DATE
      ? [
          failed(
            `${CONFIG}: "compatibility_date" is ${date === "" ? "missing" : `${date}, which is too old`}. ${set}`,
          ),
        ]
      : date < NODE_DATE && !flags.includes("nodejs_compat")
        ? [failed(`${CONFIG}: ${date} needs "compatibility_flags": ["nodejs_compat"]. Add it, or: ${set}`)]
        : []),
    ...experimental.map((flag) =>
      failed(
        `${CONFIG}: Cloudflare does not deploy Workers with the experimental flag "${flag}". Remove it: Dramatis needs no such flag.`,
      ),
    ),
  ];
}

function classProblems({ migrations }: Config, code: string | null, main = "", read: Read): ProjectProblem[] {
  const exported = code === null ? null : exportedNames(code);
  const known = classesAfter(migrations);
  const withoutSql = migrations.flatMap(({ new_classes }) => new_classes.filter((name) => known.has(name)));
  const expected = exported ?? new Set(REQUIRED);
  const own = code === null ? [] : actorClasses(code, main, read);
  const lacking = [...new Set([...ACTORS, ...own])].filter((name) => expected.has(name) && !known.has(name));
  const strangers = exported === null ? [] : [...known].filter((name) => !exported.has(name));
  const mistyped = strangers.flatMap((name) => {
    const meant = similarId(name, lacking);
    return meant === undefined ? [] : [{ name, meant }];
  });
  const unmigrated = lacking.filter((name) => mistyped.every(({ meant }) => meant !== name));
  const unexported = strangers.filter((name) => mistyped.every((each) => each.name !== name));
  const missing = exported === null ? [] : REQUIRED.filter((name) => !exported.has(name) && !known.has(name));
  const executor = known.has("Executor")
    ? [failed(`${CONFIG}: "migrations" names "Executor", which is not a Durable Object. Remove this name.`)]
    : [];
  const entry = `{ "tag": "v${migrations.length + 1}", "new_sqlite_classes": [${quoted(unmigrated)}] }`;
  return [
    ...executor,
    ...mistyped.map(({ name, meant }) =>
      failed(
        `${CONFIG}: "migrations" names "${name}", which ${main} does not export. Did you mean "${meant}"?`,
      ),
    ),
    ...(unmigrated.length > 0 ? [failed(`${CONFIG}: Add ${entry} to "migrations", at the end.`)] : []),
    ...withoutSql.map((name) =>
      failed(
        `${CONFIG}: "new_classes" has ${name}, so it has no SQL. Move it to "new_sqlite_classes" before the first deployment.`,
      ),
    ),
    ...unexported.map((name) =>
      failed(
        `${main} does not export ${name}, which a migration names. Add ${name} to \`export const { … } = app\`, or remove it from \`migrations\`.`,
      ),
    ),
    ...(exported?.has("Channel") === false &&
    /\bdramatis\(\s*\{[\s\S]*?\bchannels\s*[:,]/.test(withoutComments(code ?? ""))
      ? [
          failed(
            `${main} has \`channels\` and does not export Channel, so channels answer 503. Add it to \`export const { … } = app\`, and to a new migration.`,
          ),
        ]
      : []),
    ...missing.map((name) =>
      failed(`${main} does not export ${name}. Add it to \`export const { … } = app\`.`),
    ),
  ];
}

/** Returns the classes that exist after all migrations, by their last names. */
function classesAfter(migrations: Config["migrations"]): Set<string> {
  const classes = new Set<string>();
  for (const migration of migrations) {
    for (const name of [...migration.new_sqlite_classes, ...migration.new_classes]) classes.add(name);
    for (const { from, to } of migration.renamed_classes) if (classes.delete(from)) classes.add(to);
    for (const name of migration.deleted_classes) classes.delete(name);
  }
  return classes;
}

/** Returns the classes of Durable Objects in the module of the Worker, and in the modules that it exports from. */
function actorClasses(code: string, main: string, read: Read): string[] {
  const modules = [...code.matchAll(/\bfrom\s*["'](\.[^"']*)["']/g)].flatMap(([, path = ""]) => {
    const file = join(dirname(main), path);
    return read(file) ?? read(`${file}.ts`) ?? [];
  });
  return [code, ...modules].flatMap((text) => [...text.matchAll(ACTOR_CLASS)].map(([, name = ""]) => name));
}

function withoutComments(code: string): string {
  return code.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
}

/** Returns the names that a module exports; `null` if other modules add names. */
function exportedNames(code: string): Set<string> | null {
  const text = withoutComments(code);
  if (/\bexport\s*\*/.test(text)) return null;
  const lists = [...text.matchAll(/\bexport\s+(?:(?:const|let|var)\s*)?\{([^}]*)\}/g)];
  const declared = [...text.matchAll(/\bexport\s+(?:abstract\s+)?(?:class|const|let|var|function)\s+(\w+)/g)];
  const listed = lists.flatMap(([, list = ""]) =>
    list.split(",").map((item) => item.split(/:|\bas\b/).at(-1)),
  );
  return new Set([...listed, ...declared.map(([, name]) => name)].map((name = "") => name.trim()));
}

function bindingProblems({ d1_databases: databases, r2_buckets: buckets }: Config): ProjectProblem[] {
  const lack = (kind: string, given: { binding: string }[], name: string, add: string, loss: string) => {
    if (given.some(({ binding }) => binding === name)) return [];
    const [other] = given;
    const fix = other === undefined ? `Add ${add}` : `Rename the binding "${other.binding}" to "${name}"`;
    return [warning(`${CONFIG}: There is no ${kind} binding ${name}, so ${loss}. ${fix}.`)];
  };
  return [
    ...lack(
      "D1",
      databases,
      "DB",
      `"d1_databases": [{ "binding": "DB", "database_name": "my-app" }]`,
      "lists, dead letters and libraries by API answer 503",
    ),
    ...lack(
      "R2",
      buckets,
      "BUCKET",
      `"r2_buckets": [{ "binding": "BUCKET", "bucket_name": "my-app" }]`,
      "attachments, repositories and artifacts answer 503",
    ),
  ];
}

function environmentProblems(config: Config): ProjectProblem[] {
  return Object.entries(config.env).flatMap(([name, environment]) => {
    const lost = BINDINGS.filter(
      (binding) => Object.keys(config[binding] ?? {}).length > 0 && environment[binding] === undefined,
    );
    if (lost.length === 0) return [];
    return [
      warning(
        `${CONFIG}: The environment "${name}" does not inherit ${quoted(lost)}. Write these settings into "env.${name}", too.`,
      ),
    ];
  });
}

/** Returns a problem if no setting lets a person use the API on this machine. */
function accessProblems({ vars }: Config, code: string, read: Read, local: Variables): ProjectProblem[] {
  const names = [...Object.keys(vars), ...local.keys()];
  const isSet = /\b(?:DRAMATIS_LOCAL|AUTH_SECRET|AUTH_JWKS_URL|authorize)\b/;
  if (isSet.test([...names, code, read("package.json") ?? ""].join("\n"))) return [];
  // With a new `.dev.vars`, wrangler would ignore `.env`.
  const file = read(".dev.vars") === null && read(".env") !== null ? ".env" : ".dev.vars";
  return [
    warning(`${file}: The API answers 401 on your machine. Add the line DRAMATIS_LOCAL=1 to this file.`),
  ];
}

function assetProblems({ assets }: Config, folder: string): ProjectProblem[] {
  if (assets?.directory === undefined) return [];
  const { directory, binding, not_found_handling: notFound, run_worker_first: first } = assets;
  const covers = (route: string) =>
    typeof first === "boolean"
      ? first
      : first.some(
          (given) => given === route || (given.endsWith("*") && route.startsWith(given.slice(0, -1))),
        );
  const hidden = notFound === "single-page-application" ? ROUTES.filter((route) => !covers(route)) : [];
  return [
    ...(existsSync(join(folder, directory))
      ? []
      : [
          failed(
            `${CONFIG}: The folder ${directory} of "assets" does not exist. Run npm install${directory.startsWith("node_modules") ? "" : " and npm run build"}, or write "node_modules/dramatis/console".`,
          ),
        ]),
    ...(hidden.length > 0
      ? [
          failed(
            `${CONFIG}: The page hides routes of the server. Add ${quoted(hidden)} to "run_worker_first" of "assets".`,
          ),
        ]
      : []),
    ...(binding === "ASSETS"
      ? []
      : [
          warning(
            `${CONFIG}: "assets" has no "binding": "ASSETS", so searches of memories compare only words. Add it.`,
          ),
        ]),
  ];
}

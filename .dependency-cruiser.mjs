/**
 * The layers of `src`, checked by `npm run check`. Each folder imports only the layers above it. Folders of one layer do
 * not import each other. Files and folders form no cycles. Type imports count. A file without a layer is an error.
 */
export const LAYERS = [
  ["shared"],
  ["ports"],
  ["model"],
  ["protocol"],
  ["library", "policy", "container"],
  ["adapters"],
  ["memory"],
  ["attachments", "d1"],
  ["git", "mcp", "a2a"],
  ["artifacts"],
  ["agents/base"],
  ["agents/executor"],
  ["agents/agent", "agents/channel", "agents/trigger", "agents/event-log", "agents/workspace"],
  ["agents/conversation", "agents/coordinator"],
  ["compat"],
  ["engine", "testing"],
  ["http"],
];

/** The package's entries and the composition root, which may import every layer. */
const ROOT =
  "^src/(?:actors|actors-node|actors-portable|channels|dramatis|gateways|index|node|only-on-workers|options|patterns|portable|sessions|startup|stores|worker)\\.ts$";

/** Files that browser code may import. These files of the ports and the model contain only types. */
const CLIENT_MAY_IMPORT = [
  "^src/(?:shared|protocol|client)/",
  "^src/ports/clock\\.ts$",
  "^src/model/(?:context|messages)\\.ts$",
];

/** Files that the command line may import. */
const CLI_MAY_IMPORT =
  "^src/(?:shared/|protocol/|client/|cli/|adapters/default-profile\\.ts$|compat/(?:acp/|content\\.ts$|sent-text\\.ts$)|testing/(?:index|evals/as-bundled)\\.ts$)";

const CONVERSATION = "agents/conversation";
const COORDINATOR = "agents/coordinator";
const CHANNEL = "agents/channel";
const TRIGGER = "agents/trigger";
const WORKSPACE = "agents/workspace";

/** The folders of the library, from the bottom to the top. Each imports the folders before it. */
export const LIBRARY = [
  ...["definitions", "hooks", "tools", "skills", "memory", "tasks", "workflows", "personas"],
  ...["define", "built-in", "agents", "strategies", "registry", "authoring"],
];

/** The files of a conversation that begin work. */
const RUNTIME = ["runtime.ts", "conversation-core.ts"];

/** The folders of an actor and of the library, and the folders and files that each may import. The shell, in the files beside them, imports all. Each folder except `core` may import the types of the actor's context. */
const PARTS = {
  library: Object.fromEntries(LIBRARY.map((folder, index) => [folder, LIBRARY.slice(0, index)])),
  [CONVERSATION]: {
    core: [],
    effects: ["core"],
    store: ["core"],
    reads: ["core", "store"],
    inbound: ["core", "store", "reads", ...RUNTIME],
    copies: ["core", "reads"],
    results: ["core", "store", "reads", "inbound", ...RUNTIME],
    data: ["core", "store", "reads", "inbound", "copies", ...RUNTIME],
  },
  [COORDINATOR]: {
    core: [],
    effects: ["core"],
    store: ["core"],
    reads: ["core", "store"],
    inbound: ["core", "store", "reads"],
  },
  [CHANNEL]: {
    core: [],
    adapters: [],
  },
  [TRIGGER]: {
    core: [],
    effects: ["core"],
    store: ["core"],
    inbound: ["core", "store"],
  },
  [WORKSPACE]: {
    core: [],
    shell: ["core"],
  },
};

/** Folders without I/O: they get times, ids and data. */
const PURE = [
  "shared",
  "model",
  "protocol",
  "policy",
  "adapters/formats",
  `${CONVERSATION}/core`,
  `${COORDINATOR}/core`,
  `${CHANNEL}/core`,
  `${TRIGGER}/core`,
  `${WORKSPACE}/core`,
  "compat",
];

/** Folders that do I/O. The platform's ports have a rule of their own. */
const DOES_IO = [
  "d1",
  "attachments/attachment-store",
  "adapters/gateway",
  "adapters/resilience",
  "agents/(?:base|executor|agent)",
  `${TRIGGER}/(?:inbound/hook|effects|runtime|store|trigger)`,
  "memory/session/(?:session-store|session-table|event-store|long-text)",
  "http",
  "mcp/(?:connections|requests|mcp-tools)",
  "a2a/(?:requests|remote-agents)",
  "git/(?:git-repository|git-files|object-database|stored-packs|projects|declared-projects)",
  "artifacts/(?:artifacts|vectors)",
];

/** Packages that do I/O or belong to the platform. */
const IO_PACKAGES = ["agents", "hono", "jose", "partysocket"];

/** Files that may import the platform's own clock, ids and storage: shells, and defaults of ports. */
const USES_PLATFORM = [
  "ports/",
  "d1/",
  "engine/",
  "http/",
  "agents/base/",
  "testing/evals/eval-files\\.ts",
  "agents/agent/(?:agent|memory-embedder|memory-stores)\\.ts",
  `${TRIGGER}/trigger\\.ts`,
  "agents/event-log/event-log\\.ts",
  `${WORKSPACE}/workspace\\.ts`,
];

/** Folders that run only in Node. No other folder imports them. */
const RUNS_IN_NODE = ["cli", "container/image", "ports/node", "testing"];

const under = (folders) => `^src/(?:${folders.join("|")})/`;
const packages = (names) => `(?:^|node_modules/)(?:${names.join("|")})(?:/|$)`;

const layerRules = LAYERS.flatMap((layer, index) =>
  layer.map((folder) => ({
    name: `layer-${folder.replace("/", "-")}`,
    comment: `src/${folder} imports only itself and the layers above it.`,
    severity: "error",
    from: { path: under([folder]) },
    to: { path: "^src/", pathNot: under([folder, ...LAYERS.slice(0, index).flat()]) },
  })),
);

const partRules = Object.entries(PARTS).flatMap(([actor, parts]) =>
  Object.entries(parts).map(([part, above]) => ({
    name: `${actor.replace("agents/", "")}-${part}`,
    comment: `The ${part} of ${actor} imports of it only ${[part, ...above].join(", ")}.`,
    severity: "error",
    from: { path: under([`${actor}/${part}`]) },
    to: {
      path: under([actor]),
      pathNot: [
        under([part, ...above].map((folder) => `${actor}/${folder}`)),
        `^src/(?:${above
          .filter((name) => name.endsWith(".ts"))
          .map((name) => `${actor}/${name}`)
          .join("|")})$`,
        ...(part === "core" ? [] : [`^src/${actor}/context\\.ts$`]),
      ],
    },
  })),
);

const contextRules = [CONVERSATION, COORDINATOR].map((actor) => ({
  name: `${actor.replace("agents/", "")}-context`,
  comment: `The context of ${actor} has types only, so it imports of the actor only core.`,
  severity: "error",
  from: { path: `^src/${actor}/context\\.ts$` },
  to: { path: under([actor]), pathNot: under([`${actor}/core`]) },
}));

/** All files with a layer: the root, the client, the command line, and the layers. Some layers have parts. */
const PLACED = [
  ROOT,
  under(["client", "cli", ...LAYERS.flat().filter((folder) => !Object.hasOwn(PARTS, folder))]),
  ...Object.entries(PARTS).flatMap(([actor, parts]) => [
    under(Object.keys(parts).map((part) => `${actor}/${part}`)),
    `^src/${actor}/[^/]+$`,
  ]),
];

export default {
  forbidden: [
    {
      name: "not-in-a-layer",
      comment:
        "Every folder of src has a layer in this file. In a layer with parts, every folder has a part.",
      severity: "error",
      from: { path: "^src/", pathNot: PLACED },
      to: {},
    },
    {
      name: "not-in-a-layer",
      comment: "As above, for a folder without imports.",
      severity: "error",
      from: {},
      to: { path: "^src/", pathNot: PLACED },
    },
    {
      name: "not-in-a-layer",
      comment: "As above, for a folder without imports and importers.",
      severity: "error",
      from: { orphan: true, path: "^src/", pathNot: PLACED },
      to: {},
    },
    ...layerRules,
    ...partRules,
    ...contextRules,
    {
      name: "layer-client",
      comment: "Browser code imports only shared code, types of ports and model, and the protocol.",
      severity: "error",
      from: { path: under(["client"]) },
      to: { path: "^src/", pathNot: CLIENT_MAY_IMPORT },
    },
    {
      name: "layer-cli",
      comment: "The command line reaches a server by the client, and evals by the test kit.",
      severity: "error",
      from: { path: under(["cli"]) },
      to: { path: "^src/", pathNot: CLI_MAY_IMPORT },
    },
    {
      name: "root-is-on-top",
      comment: "Only the root's own files import the root.",
      severity: "error",
      from: { path: "^src/", pathNot: ROOT },
      to: { path: ROOT },
    },
    {
      name: "engine-is-a-leaf",
      comment: "The engine is an entry of the package. Other folders of src do not import it.",
      severity: "error",
      from: { path: "^src/", pathNot: under(["engine"]) },
      to: { path: under(["engine"]) },
    },
    {
      name: "testing-is-a-leaf",
      comment:
        "The test kit is an entry of the package. Of the other folders only the command line imports it.",
      severity: "error",
      from: { path: "^src/", pathNot: under(["cli", "testing"]) },
      to: { path: under(["testing"]) },
    },
    {
      name: "actors-by-protocol",
      comment: "Code outside the actors reaches them by the protocol. The root makes their classes.",
      severity: "error",
      from: { path: under(["compat", "engine", "http"]) },
      to: { path: under(["agents"]) },
    },
    {
      name: "pure",
      comment: "Pure folders do no I/O. They do not import the platform or code that uses it.",
      severity: "error",
      from: { path: under(PURE) },
      to: {
        path: [...DOES_IO.map((path) => `^src/${path}(?:/|\\.)`), packages(IO_PACKAGES), "^cloudflare:"],
      },
    },
    {
      name: "platform",
      comment: "Only shells and defaults of ports use the platform's own clock, ids and storage.",
      severity: "error",
      from: { path: "^src/", pathNot: [ROOT, ...USES_PLATFORM.map((path) => `^src/${path}`)] },
      to: { path: "^src/ports/(?:system\\.ts$|workers/)" },
    },
    {
      name: "node-ports",
      comment: "The ports for Node are for tests and tools. Workers lack these modules.",
      severity: "error",
      from: { path: "^src/", pathNot: under(RUNS_IN_NODE) },
      to: { path: under(["ports/node"]) },
    },
    {
      name: "node-modules",
      comment:
        "The code runs on Workers and in browsers, so only the ports for Node, the test kit, the command line and the program in a container use Node's modules. Workers have the hashes and the compression of git.",
      severity: "error",
      from: { path: "^src/", pathNot: under([...RUNS_IN_NODE, "git"]) },
      to: { dependencyTypes: ["core"] },
    },
    {
      name: "agents-sdk",
      comment:
        "The SDK is for actors and for its own client. (Biome lets durable-actor.ts alone import its class Agent.)",
      severity: "error",
      from: { path: "^src/", pathNot: under(["agents", "client"]) },
      to: { path: packages(["agents"]) },
    },
    {
      name: "no-file-cycle",
      severity: "error",
      from: { path: "^src/" },
      to: { circular: true },
    },
    {
      name: "no-folder-cycle",
      severity: "error",
      scope: "folder",
      from: {},
      to: { circular: true },
    },
  ],
  options: {
    parser: "swc",
    tsPreCompilationDeps: true,
    doNotFollow: { path: ["(?:^|/)node_modules/", "^examples/"] },
    enhancedResolveOptions: {
      extensions: [".ts", ".tsx", ".js"],
      exportsFields: ["exports"],
      conditionNames: ["import", "workerd", "default", "types"],
    },
  },
};

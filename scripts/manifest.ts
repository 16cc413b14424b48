/** The manifest of the published package: the repository's, without the parts for building and testing. */
import { readFileSync } from "node:fs";

/** Entry points of the package and their modules, without extension. */
export const ENTRIES = {
  ".": "index",
  "./actors": "actors",
  "./sessions": "sessions",
  "./container": "container/index",
  "./patterns": "patterns",
  "./channels": "channels",
  "./client": "client/index",
  "./ai-sdk": "client/ai-sdk/index",
  "./react": "client/react/index",
  "./adapters": "adapters/index",
  "./engine": "engine/index",
  "./testing": "testing/index",
};

/** The modules of entries in Node, which lacks the platform's modules that actors import. */
const IN_NODE: Record<string, string> = { ".": "node", "./actors": "actors-node" };

/** The command line. */
const BIN = { dramatis: "./cli/main.js" };

/** The package of `npm create dramatis`: its name, and its command. */
const CREATE = { name: "create-dramatis", bin: { "create-dramatis": "./cli/create.js" } };

/** The modules of `create-dramatis`, without extension. */
export const CREATE_MODULES = ["cli/create", "cli/new-project", "cli/node-version", "shared/version"];

/** Node version that the dependencies require. The repository installs its own Node. */
const ENGINES = { node: ">=22.14.0" };

/** Packages that an application installs itself if it uses the entry points that need them. */
const OPTIONAL_PEERS = { ai: "^7.0.0", react: "^19.0.0", vite: ">=6.0.0 <9.0.0" };

interface RepositoryManifest {
  name: string;
  version: string;
  description: string;
  license: string;
  type: string;
  dependencies: Record<string, string>;
}

export interface Manifest extends RepositoryManifest {
  engines: Record<string, string>;
  bin: Record<string, string>;
  exports: Record<string, { types: string; workerd?: string; node?: string; default: string }>;
  peerDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, { optional: true }>;
}

export function packageManifest(path: string): Manifest {
  // SAFETY: npm requires these fields of the repository's manifest.
  const source = JSON.parse(readFileSync(path, "utf8")) as RepositoryManifest;
  const { name, version, description, license, type, dependencies } = source;
  const entries = Object.entries(ENTRIES).map(([entry, module]) => {
    const code = `./${module}.js`;
    const inNode = IN_NODE[entry];
    const conditions = inNode === undefined ? {} : { workerd: code, node: `./${inNode}.js` };
    return [entry, { types: `./${module}.d.ts`, ...conditions, default: code }];
  });
  const optional = Object.keys(OPTIONAL_PEERS).map((peer) => [peer, { optional: true }]);
  return {
    ...{ name, version, description, license, type },
    engines: ENGINES,
    bin: BIN,
    exports: Object.fromEntries(entries),
    dependencies,
    peerDependencies: OPTIONAL_PEERS,
    peerDependenciesMeta: Object.fromEntries(optional),
  };
}

/** Returns the manifest of `create-dramatis`. */
export function createManifest({ version, license, type, engines }: Manifest): object {
  return { ...CREATE, version, description: "Creates a Dramatis project.", license, type, engines };
}

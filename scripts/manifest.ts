/**
 * The manifest of the published package: the checkout's, without what only the checkout needs (its Node binaries, its
 * overrides, what builds and tests it).
 */
import { readFileSync } from "node:fs";

/** What the package offers, and the module behind each, without extension. */
const ENTRIES = {
  ".": "index",
  "./client": "client/index",
  "./ai-sdk": "client/ai-sdk/index",
  "./react": "client/react/use-conversation",
  "./adapters": "adapters/index",
  "./engine": "engine/index",
};

/** What the dependencies ask for; the checkout brings a Node of its own. */
const ENGINES = { node: ">=22.14.0" };

/** Packages that an application has anyway where it uses what needs them. */
const OPTIONAL_PEERS = { ai: "^7.0.0", react: "^19.0.0", vite: ">=6.0.0 <9.0.0" };

interface CheckoutManifest {
  name: string;
  version: string;
  description: string;
  license: string;
  type: string;
  dependencies: Record<string, string>;
}

export interface Manifest extends CheckoutManifest {
  engines: Record<string, string>;
  exports: Record<string, { types: string; default: string }>;
  peerDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, { optional: true }>;
}

export function packageManifest(path: string): Manifest {
  // SAFETY: this repository's own manifest, whose fields npm requires.
  const checkout = JSON.parse(readFileSync(path, "utf8")) as CheckoutManifest;
  const { name, version, description, license, type, dependencies } = checkout;
  const entries = Object.entries(ENTRIES).map(([entry, module]) => [
    entry,
    { types: `./${module}.d.ts`, default: `./${module}.js` },
  ]);
  const optional = Object.keys(OPTIONAL_PEERS).map((peer) => [peer, { optional: true }]);
  return {
    ...{ name, version, description, license, type },
    engines: ENGINES,
    exports: Object.fromEntries(entries),
    dependencies,
    peerDependencies: OPTIONAL_PEERS,
    peerDependenciesMeta: Object.fromEntries(optional),
  };
}

/**
 * The layers of `src`, checked by `npm run check`. Each folder imports only the layers above it; folders of one layer do
 * not import each other; neither files nor folders form a cycle. Type imports count.
 */
const LAYERS = [
  ["shared"],
  ["ports"],
  ["model"],
  ["protocol"],
  ["library", "policy"],
  ["adapters"],
  ["memory"],
  ["attachments", "d1"],
  ["agents/base"],
  ["agents/executor"],
  ["agents/agent"],
  ["agents/conversation"],
  ["compat"],
  ["engine"],
  ["http"],
];

/** Layers that the browser's side may import. */
const CLIENT_MAY_IMPORT = ["shared", "model", "protocol", "client"];

const under = (folders) => `^src/(?:${folders.join("|")})/`;

const layerRules = LAYERS.flatMap((layer, index) =>
  layer.map((folder) => ({
    name: `layer-${folder.replace("/", "-")}`,
    comment: `src/${folder} imports only itself and the layers above it.`,
    severity: "error",
    from: { path: under([folder]) },
    to: { path: "^src/", pathNot: under([folder, ...LAYERS.slice(0, index).flat()]) },
  })),
);

export default {
  forbidden: [
    ...layerRules,
    {
      name: "layer-client",
      comment: "What runs in a browser imports shared code, model types and the protocol only.",
      severity: "error",
      from: { path: under(["client"]) },
      to: { path: "^src/", pathNot: under(CLIENT_MAY_IMPORT) },
    },
    {
      name: "engine-is-a-leaf",
      comment: "Nothing in src uses the engine: it is an entry of the package.",
      severity: "error",
      from: { path: "^src/", pathNot: under(["engine"]) },
      to: { path: under(["engine"]) },
    },
    {
      name: "no-file-cycle",
      severity: "error",
      from: {},
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
    includeOnly: "^src",
    enhancedResolveOptions: { extensions: [".ts", ".tsx"] },
  },
};

import * as esbuild from "esbuild";

const f = process.argv[2];
await esbuild.build({
  entryPoints: [f],
  bundle: true,
  platform: "node",
  format: "esm",
  outfile: "/tmp/eff-out.mjs",
  logLevel: "error",
});
await import("/tmp/eff-out.mjs");

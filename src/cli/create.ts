#!/usr/bin/env node
/** The command of the package `create-dramatis`: `npm create dramatis my-app`. */
import { parseArgs } from "node:util";
import { VERSION } from "../shared/version.ts";
import { writeProject } from "./new-project.ts";

const HELP = `Usage: create-dramatis [folder] [options]

Writes a new project into the folder, "my-app" by default.

  --template NAME   assistant (default), team, workflow or react
  --package FILE    the packed archive of dramatis, instead of the registry
  -h, --help        prints this text`;

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      template: { type: "string" },
      package: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  const [folder = "my-app"] = positionals;
  const { template, package: archive } = values;
  console.log(values.help ? HELP : writeProject({ folder, template, archive, version: VERSION }).text);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

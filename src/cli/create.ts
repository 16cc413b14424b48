#!/usr/bin/env node
/** The command of the package `create-dramatis`: `npm create dramatis my-app`. */
import { parseArgs } from "node:util";
import { VERSION } from "../shared/version.ts";
import { writeProject } from "./new-project.ts";

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { template: { type: "string" }, package: { type: "string" } },
  });
  const [folder = "my-app"] = positionals;
  const { template, package: archive } = values;
  console.log(writeProject({ folder, template, archive, version: VERSION }).text);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

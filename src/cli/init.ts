/** `dramatis init`: writes a new project. It needs no server. */
import { VERSION } from "../shared/version.ts";
import type { Command } from "./command.ts";
import { writeProject } from "./new-project.ts";

export const INIT_COMMANDS: readonly Command[] = [
  {
    name: "init",
    about: "writes a new project",
    args: { "[folder]": "the folder of the project, this folder by default" },
    options: {
      "--template <name>": "assistant, team, workflow or react; assistant by default",
      "--package <archive>": "packed archive of dramatis, instead of the registry",
    },
    async run(_cli, [folder = "."], { template, package: archive }) {
      const { files, text } = writeProject({ folder, template, archive, version: VERSION });
      return { value: { files }, text };
    },
  },
];

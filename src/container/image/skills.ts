/** The files of skills in a container (SKILL-5). */
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ContainerRequest } from "../../protocol/container.ts";

const { SKILLS = "/skills" } = process.env;

/** Replaces all files in the folder of skills, so the changes of an earlier command are gone. */
export function putSkills(files: ContainerRequest["skills"] = []): void {
  // An image of a user may have no such folder.
  if (files.length === 0 && !existsSync(SKILLS)) return;
  mkdirSync(SKILLS, { recursive: true });
  chmodSync(SKILLS, 0o755);
  for (const name of readdirSync(SKILLS)) rmSync(join(SKILLS, name), { recursive: true, force: true });
  for (const [path, text] of files) {
    const place = join(SKILLS, path);
    mkdirSync(dirname(place), { recursive: true });
    writeFileSync(place, text);
  }
}

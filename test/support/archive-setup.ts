/** Provides a folder for the archive of the package. The first test file that needs the archive builds it there. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

export default function setup(project: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), "dramatis-archive-"));
  project.provide("archiveFolder", folder);
  return () => rmSync(folder, { recursive: true, force: true });
}

declare module "vitest" {
  interface ProvidedContext {
    archiveFolder: string;
  }
}

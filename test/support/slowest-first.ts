/** The order of the test files. Slow files start first, so that no worker is idle while the last of them runs. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Slow files, in the order of their starts. A file that mostly waits runs beside a file that computes. The first file builds the archive of the
 * package for others.
 */
const SLOW = [
  ...[
    "e2e/package",
    "e2e/kills",
    "e2e/kill",
    "e2e/templates",
    "e2e/browser",
    "e2e/start",
    "e2e/documentation",
  ],
  ...["e2e/console-files", "e2e/console-runs", "e2e/console-work", "e2e/acp", "e2e/console-inspector"],
  ...["e2e/console-memory", "e2e/cli", "e2e/auth", "e2e/console-conversations", "e2e/a2a-kills"],
  ...["node/simulation", "node/conversation-core", "node/simulate-app", "node/crash", "node/releases"],
  ...["node/hooks", "node/flows", "node/mailbox"],
  ...["node/git", "node/memory-copies", "node/container-shell", "node/workspace-shell", "node/folding"],
  // Files with their own runtime come first: the others then share theirs to the end.
  ...["event-log", "release-work", "lists-database", "libraries", "retention", "auth"].map(workers),
  ...["a2a-agents", "workspace", "a2a-tasks", "channels", "erasure", "delegation"].map(workers),
  ...["budgets", "answerers", "run-parts", "hostile-schemas", "hostile-bodies", "turn-list"].map(workers),
  ...["conversation-recovery", "memory-http", "conversation-wire", "run-nodes", "run-views"].map(workers),
].map((name) => join(import.meta.dirname, "..", `${name}.test.ts`));

function workers(name: string): string {
  return `workers/${name}`;
}

/**
 * Starts the files of `SLOW` first, within each project. The files of a project stay together: vitest ends a shared process if the next file
 * is of another project.
 */
export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const absent = SLOW.filter((file) => !existsSync(file));
    if (absent.length > 0) throw new Error(`There is no ${absent.join(", ")}.`);
    const projects = this.ctx.projects.map(({ name }) => name);
    const projectOf = ({ project }: TestSpecification) => projects.indexOf(project.name);
    const sorted = await super.sort(files);
    return sorted.sort(
      (one, other) =>
        groupOf(one) - groupOf(other) || projectOf(one) - projectOf(other) || placeOf(one) - placeOf(other),
    );
  }
}

function groupOf({ project }: TestSpecification): number {
  return project.config.sequence.groupOrder;
}

function placeOf({ moduleId }: TestSpecification): number {
  const place = SLOW.indexOf(moduleId);
  return place === -1 ? SLOW.length : place;
}

/** A library of an author, on a real database of Node's. */
import { vi } from "vitest";
import { D1Definitions } from "../../src/d1/d1-definitions.ts";
import type { Library } from "../../src/library/define/define.ts";
import {
  contentHash,
  type DefinitionKind,
  type DefinitionTypes,
} from "../../src/library/definitions/definition.ts";
import { CODE_TENANT } from "../../src/library/registry/definition-source.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { nodeD1 } from "../../src/ports/node/node-d1.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import type { TaskDefinition } from "../../src/protocol/task-definition.ts";
import type { WorkflowDefinition, WorkflowNode } from "../../src/protocol/workflow-definition.ts";
import type { Principal } from "../../src/shared/principal.ts";

export const author: Principal = { subject: "ann", tenant: "t", roles: ["author"] };

/** A library `own` of an author beside deployed libraries, and the reads of its definitions. */
export function library(deployed: readonly Library[] = []) {
  const database = nodeD1(new NodeSqlDatabase());
  const authored = new D1Definitions(database, "t");
  const stores = { deployed: new D1Definitions(database, CODE_TENANT), authored };
  const find = vi.spyOn(authored, "find");
  return {
    find,
    async add<Kind extends DefinitionKind>(kind: Kind, id: string, definition: DefinitionTypes[Kind]) {
      await authored.add(
        { kind, library: "own", id, hash: await contentHash(definition), definition },
        author,
      );
    },
    /** Returns a registry as one request has it. */
    registry: (): Registry => new Registry(new DeployedCode(deployed), stores),
    async finds(work: () => Promise<unknown>): Promise<number> {
      find.mockClear();
      await work();
      return find.mock.calls.length;
    },
  };
}

/** Returns a workflow that is a chain of nodes. */
export function workflow(owners: readonly Partial<WorkflowNode>[]): WorkflowDefinition {
  const nodes = owners.map((owner, index) => ({ ref: `n${index}`, ...owner }));
  const transitions = nodes.slice(1).map((_, index) => ({
    ...{ ref: `t${index}`, from: `n${index}`, to: `n${index + 1}`, priority: 0 },
  }));
  return { inputSchema: { type: "object" }, initialNode: "n0", nodes, transitions };
}

export function taskOf(
  action: NonNullable<TaskDefinition["steps"]>[number]["action"],
  more: Partial<TaskDefinition> = {},
): TaskDefinition {
  const steps = [{ ref: "s", action, onFailure: "abort" as const }];
  return { inputSchema: { type: "object" }, timeoutMs: 1_000, steps, ...more };
}

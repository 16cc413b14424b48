/**
 * The rows of D1 that hold data of a conversation or of an agent, and the statements that delete them.
 *
 * REMOVE-5  A deletion touches rows of one tenant and one owner only.
 */
import type { Clock } from "../ports/clock.ts";
import { REMOVE_USERS } from "./conversation-statements.ts";
import { D1Queries, type Databases, type Query } from "./queries.ts";
import { REMOVE_TURN_LABELS } from "./turn-statements.ts";

/** The owner of rows. `createdAt` is in milliseconds since the epoch. */
export interface RowOwner {
  kind: "conversation" | "agent";
  tenant: string;
  id: string;
  createdAt: number;
}

type Delete = (owner: RowOwner) => Query | [Query, ...Query[]];

/** The deletions from a table, by the kind of the owner. An absent kind has no rows there. */
type Deletes = Partial<Record<RowOwner["kind"], Delete>>;

const byKey =
  (table: "agents" | "conversations"): Delete =>
  ({ tenant, createdAt, id }) => [
    `DELETE FROM ${table} WHERE tenant = ?1 AND created_at = ?2 AND id = ?3`,
    tenant,
    createdAt,
    id,
  ];

const byPlace =
  (table: "approvers" | "approvals" | "approval_places"): Delete =>
  ({ tenant, id }) => [`DELETE FROM ${table} WHERE tenant = ?1 AND place = ?2`, tenant, id];

/** Letters that the owner sent, and letters that others could not deliver to it. */
const letters: Delete = ({ kind, tenant, id }) => [
  `DELETE FROM dead_letters WHERE tenant = ?1 AND (
  (letter ->> '$.from.kind' = ?2 AND letter ->> '$.from.id' = ?3) OR (letter ->> '$.to.kind' = ?2 AND letter ->> '$.to.id' = ?3))`,
  tenant,
  kind,
  id,
];

/** Every table that holds rows of owners. The users of a conversation are found by its row, so they come before it. */
export const OWNED_TABLES = {
  conversation_users: {
    conversation: ({ tenant, createdAt, id }) => [
      REMOVE_USERS,
      tenant,
      createdAt,
      id,
      "[]",
      Number.MAX_SAFE_INTEGER,
    ],
  },
  conversations: { conversation: byKey("conversations") },
  conversation_marks: {
    // A mark needs the row of its conversation, so no mark can follow.
    conversation: ({ tenant, id }) => [
      "DELETE FROM conversation_marks WHERE tenant = ?1 AND id = ?2",
      tenant,
      id,
    ],
  },
  usage: {
    conversation: ({ tenant, id }) => [
      "DELETE FROM usage WHERE tenant = ?1 AND conversation_id = ?2",
      tenant,
      id,
    ],
    agent: ({ tenant, id }) => ["DELETE FROM usage WHERE tenant = ?1 AND agent_id = ?2", tenant, id],
  },
  turn_labels: { conversation: ({ tenant, id }) => [REMOVE_TURN_LABELS, tenant, id] },
  turns: {
    // The rows of turns name their labels, so they go together.
    conversation: ({ tenant, id }) => [
      [REMOVE_TURN_LABELS, tenant, id],
      ["DELETE FROM turns WHERE tenant = ?1 AND conversation_id = ?2", tenant, id],
    ],
  },
  published_turns: {
    conversation: ({ tenant, id }) => [
      "DELETE FROM published_turns WHERE tenant = ?1 AND conversation_id = ?2",
      tenant,
      id,
    ],
  },
  approvers: { conversation: byPlace("approvers") },
  approvals: { conversation: byPlace("approvals") },
  approval_places: { conversation: byPlace("approval_places") },
  memories: {
    agent: ({ tenant, id }) => ["DELETE FROM memories WHERE tenant = ?1 AND agent_id = ?2", tenant, id],
  },
  dead_letters: { conversation: letters, agent: letters },
  agents: { agent: byKey("agents") },
} as const satisfies Record<string, Deletes>;

/** The tables without data of a conversation or an agent, with a description of their content. */
export const OTHER_TABLES = {
  dramatis_migrations: "the migrations that were applied",
  libraries: "the libraries of tenants",
  definitions: "the definitions of libraries",
  triggers: "what a trigger starts, and as whom",
  runs: "the runs of workflows",
  tenant_databases: "the databases with the lists of tenants",
  projects: "the projects of tenants",
  project_secrets: "the encrypted secrets of projects",
  repositories: "the git repositories of projects",
  git_packs: "the stored packs of repositories",
  git_refs: "the branches and tags of repositories",
  removed_repositories: "the packs and vectors of deleted repositories",
  artifacts: "the index of the artifacts of projects",
  artifact_operations: "the newest writes of artifacts, by their keys",
  mcp_servers: "the tools of MCP servers that tenants have accepted",
} as const;

export type OwnedTable = keyof typeof OWNED_TABLES;

/** Cheap to create. */
export class D1OwnedRows {
  // SAFETY: the names are the registry's own.
  readonly tables = Object.keys(OWNED_TABLES) as OwnedTable[];
  readonly #queries: D1Queries;

  constructor(databases: Databases, clock?: Pick<Clock, "timer">) {
    this.#queries = new D1Queries(databases, clock);
  }

  /** Returns the function that deletes an owner's rows of a table. It rejects if the database does not answer in time. */
  emptying(table: OwnedTable): (owner: RowOwner) => Promise<void> {
    const deletes: Deletes = OWNED_TABLES[table];
    return async (owner) => {
      const queries = deletes[owner.kind]?.(owner);
      if (queries === undefined) return;
      await (isList(queries) ? this.#queries.write(...queries) : this.#queries.write(queries));
    };
  }
}

function isList(queries: Query | [Query, ...Query[]]): queries is [Query, ...Query[]] {
  return Array.isArray(queries[0]);
}

/**
 * The directory's tables, as a list of migrations. The Worker applies them, so installing or upgrading needs no command.
 *
 * SCHEMA-1  A released migration never changes. A change is a new migration at the end.
 * SCHEMA-2  The previous release keeps working after a migration, because both run during a deployment. So a migration adds tables and
 *           optional columns, and keeps everything that the previous release uses.
 *
 * The order of a list is its table's primary key, so a page is one range of the key and needs no index. Runs have indexes for the lists by
 * starter, status and workflow. Triggers have an index for the lists by subject. Requests for approval are listed by the names of their
 * approvers (approval-statements.ts). Turns are listed by their labels (turn-statements.ts). Projects are listed by their ids.
 */

export interface Migration {
  /** The key of the record that it was applied. */
  name: string;
  statements: readonly string[];
}

export const MIGRATIONS: readonly Migration[] = [
  {
    name: "0001_directory",
    statements: [
      `CREATE TABLE agents (
        tenant TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        id TEXT NOT NULL,
        persona TEXT NOT NULL,
        project_ids TEXT NOT NULL,
        updated_at INTEGER NOT NULL,
        metadata TEXT,
        PRIMARY KEY (tenant, created_at, id)
      ) STRICT, WITHOUT ROWID`,
      `CREATE TABLE conversations (
        tenant TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        id TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        project_id TEXT NOT NULL,
        title TEXT,
        participants TEXT NOT NULL,
        PRIMARY KEY (tenant, created_at, id)
      ) STRICT, WITHOUT ROWID`,
      `CREATE TABLE conversation_users (
        tenant TEXT NOT NULL,
        user_id TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        id TEXT NOT NULL,
        PRIMARY KEY (tenant, user_id, created_at, id)
      ) STRICT, WITHOUT ROWID`,
      `CREATE TABLE dead_letters (
        tenant TEXT NOT NULL,
        operation_id TEXT NOT NULL,
        letter TEXT NOT NULL,
        PRIMARY KEY (tenant, operation_id)
      ) STRICT, WITHOUT ROWID`,
      `CREATE TABLE libraries (
        tenant TEXT NOT NULL,
        id TEXT NOT NULL,
        owner TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (tenant, id)
      ) STRICT, WITHOUT ROWID`,
      `CREATE TABLE definitions (
        tenant TEXT NOT NULL,
        library TEXT NOT NULL,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        version INTEGER NOT NULL,
        hash TEXT NOT NULL,
        owner TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        definition TEXT NOT NULL,
        PRIMARY KEY (tenant, library, kind, id, version),
        UNIQUE (tenant, library, kind, id, hash)
      ) STRICT, WITHOUT ROWID`,
      `CREATE INDEX definitions_by_creation ON definitions (tenant, library, kind, created_at, id)
        WHERE version = 1`,
      `CREATE TABLE usage (
        tenant TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        calls INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        cached_input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        nano_dollars INTEGER NOT NULL,
        PRIMARY KEY (tenant, agent_id, conversation_id)
      ) STRICT, WITHOUT ROWID`,
      `CREATE TABLE triggers (
        tenant TEXT NOT NULL,
        id TEXT NOT NULL,
        acts_as TEXT NOT NULL,
        summary TEXT NOT NULL,
        updated_at INTEGER NOT NULL,
        PRIMARY KEY (tenant, id)
      ) STRICT, WITHOUT ROWID`,
      "CREATE INDEX triggers_by_subject ON triggers (tenant, acts_as, id)",
      `CREATE TABLE runs (
        tenant TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        id TEXT NOT NULL,
        started_by TEXT NOT NULL,
        library TEXT NOT NULL,
        workflow TEXT NOT NULL,
        version INTEGER NOT NULL,
        project_id TEXT NOT NULL,
        status TEXT NOT NULL,
        seq INTEGER NOT NULL,
        ended_at INTEGER,
        error_code TEXT,
        PRIMARY KEY (tenant, created_at, id)
      ) STRICT, WITHOUT ROWID`,
      "CREATE INDEX runs_by_starter ON runs (tenant, started_by, created_at, id)",
      "CREATE INDEX runs_by_status ON runs (tenant, status, created_at, id)",
      "CREATE INDEX runs_by_workflow ON runs (tenant, library, workflow, created_at, id)",
      `CREATE TABLE memories (
        tenant TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        id TEXT NOT NULL,
        type TEXT NOT NULL,
        content TEXT NOT NULL,
        content_ref TEXT,
        significance REAL NOT NULL,
        metadata TEXT NOT NULL,
        key TEXT,
        speaker TEXT,
        session TEXT,
        sequence INTEGER,
        time INTEGER,
        user_id TEXT,
        conversation_id TEXT,
        state TEXT NOT NULL,
        tainted INTEGER NOT NULL,
        valid_from INTEGER NOT NULL,
        valid_to INTEGER,
        version INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        PRIMARY KEY (tenant, agent_id, id)
      ) STRICT, WITHOUT ROWID`,
      "CREATE INDEX memories_by_type ON memories (tenant, agent_id, type, id)",
      `CREATE TABLE approval_places (
        tenant TEXT NOT NULL,
        place TEXT NOT NULL,
        seq INTEGER NOT NULL,
        PRIMARY KEY (tenant, place)
      ) STRICT, WITHOUT ROWID`,
      `CREATE TABLE approvals (
        tenant TEXT NOT NULL,
        key TEXT NOT NULL,
        place TEXT NOT NULL,
        excluded TEXT,
        expires_at INTEGER,
        request TEXT NOT NULL,
        PRIMARY KEY (tenant, key)
      ) STRICT, WITHOUT ROWID`,
      "CREATE INDEX approvals_by_place ON approvals (tenant, place)",
      `CREATE TABLE approvers (
        tenant TEXT NOT NULL,
        name TEXT NOT NULL,
        lane TEXT NOT NULL,
        key TEXT NOT NULL,
        place TEXT NOT NULL,
        agent_id TEXT,
        PRIMARY KEY (tenant, name, lane, key)
      ) STRICT, WITHOUT ROWID`,
      "CREATE INDEX approvers_by_place ON approvers (tenant, place, name, lane, key)",
      `CREATE INDEX approvers_by_agent ON approvers (tenant, agent_id, name, lane, key)
        WHERE agent_id IS NOT NULL`,
    ],
  },
  {
    name: "0002_turns",
    statements: [
      "ALTER TABLE conversations ADD COLUMN seq INTEGER NOT NULL DEFAULT 0",
      "ALTER TABLE conversations ADD COLUMN forked_from TEXT",
      `CREATE TABLE turns (
        tenant TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        id TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        conversation_at INTEGER NOT NULL,
        status TEXT NOT NULL,
        seq INTEGER NOT NULL,
        labels TEXT NOT NULL,
        record TEXT NOT NULL,
        PRIMARY KEY (tenant, created_at, id)
      ) STRICT, WITHOUT ROWID`,
      "CREATE INDEX turns_by_conversation ON turns (tenant, conversation_id, created_at, id)",
      `CREATE TABLE turn_labels (
        tenant TEXT NOT NULL,
        label TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        id TEXT NOT NULL,
        PRIMARY KEY (tenant, label, created_at, id)
      ) STRICT, WITHOUT ROWID`,
      `CREATE TABLE published_turns (
        tenant TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        seq INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        active_at INTEGER,
        PRIMARY KEY (tenant, conversation_id)
      ) STRICT, WITHOUT ROWID`,
      `CREATE INDEX published_by_activity ON published_turns (tenant, active_at, conversation_id)
        WHERE active_at IS NOT NULL`,
      `INSERT INTO published_turns (tenant, conversation_id, seq, created_at, active_at)
        SELECT tenant, id, 0, created_at, created_at FROM conversations`,
      `CREATE TABLE conversation_marks (
        tenant TEXT NOT NULL,
        user_id TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        id TEXT NOT NULL,
        pinned_at INTEGER,
        archived_at INTEGER,
        PRIMARY KEY (tenant, user_id, created_at, id)
      ) STRICT, WITHOUT ROWID`,
      "CREATE INDEX marks_by_conversation ON conversation_marks (tenant, id)",
    ],
  },
  {
    name: "0003_tenant_databases",
    statements: [
      `CREATE TABLE tenant_databases (
        tenant TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        target TEXT,
        left_name TEXT,
        copied TEXT,
        since INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID`,
    ],
  },
  {
    name: "0004_run_names",
    statements: ["ALTER TABLE runs ADD COLUMN name TEXT", "ALTER TABLE runs ADD COLUMN name_key TEXT"],
  },
  {
    name: "0005_repositories",
    statements: [
      `CREATE TABLE projects (
        tenant TEXT NOT NULL,
        id TEXT NOT NULL,
        settings TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (tenant, id)
      ) STRICT, WITHOUT ROWID`,
      `CREATE TABLE repositories (
        tenant TEXT NOT NULL,
        project TEXT NOT NULL,
        id TEXT NOT NULL,
        kind TEXT NOT NULL,
        default_branch TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (tenant, project, id)
      ) STRICT, WITHOUT ROWID`,
      `CREATE TABLE git_packs (
        tenant TEXT NOT NULL,
        project TEXT NOT NULL,
        repo TEXT NOT NULL,
        name TEXT NOT NULL,
        bytes INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (tenant, project, repo, name)
      ) STRICT, WITHOUT ROWID`,
      `CREATE TABLE git_refs (
        tenant TEXT NOT NULL,
        project TEXT NOT NULL,
        repo TEXT NOT NULL,
        name TEXT NOT NULL,
        oid TEXT NOT NULL,
        PRIMARY KEY (tenant, project, repo, name)
      ) STRICT, WITHOUT ROWID`,
    ],
  },
  {
    name: "0006_artifacts",
    statements: [
      `CREATE TABLE artifacts (
        tenant TEXT NOT NULL,
        project TEXT NOT NULL,
        path TEXT NOT NULL,
        oid TEXT NOT NULL,
        rules TEXT NOT NULL,
        type TEXT,
        bytes INTEGER NOT NULL,
        title TEXT NOT NULL,
        fields TEXT,
        updated_at INTEGER NOT NULL,
        vector TEXT,
        embedded INTEGER NOT NULL DEFAULT 0,
        words TEXT NOT NULL,
        PRIMARY KEY (tenant, project, path)
      ) STRICT, WITHOUT ROWID`,
      `CREATE INDEX artifacts_to_embed ON artifacts (tenant, project)
        WHERE embedded = 0 AND vector IS NOT NULL`,
      `CREATE TABLE artifact_operations (
        tenant TEXT NOT NULL,
        project TEXT NOT NULL,
        key TEXT NOT NULL,
        version TEXT NOT NULL,
        at INTEGER NOT NULL,
        PRIMARY KEY (tenant, project, key)
      ) STRICT, WITHOUT ROWID`,
      "ALTER TABLE repositories ADD COLUMN indexed TEXT",
    ],
  },
  {
    name: "0007_removed_repositories",
    statements: [
      `CREATE TABLE removed_repositories (
        tenant TEXT NOT NULL,
        project TEXT NOT NULL,
        repo TEXT NOT NULL,
        since INTEGER NOT NULL,
        removed_at INTEGER NOT NULL,
        packs TEXT NOT NULL,
        vectors TEXT NOT NULL,
        PRIMARY KEY (tenant, project, repo, since)
      ) STRICT, WITHOUT ROWID`,
    ],
  },
  {
    name: "0009_mcp_servers",
    statements: [
      `CREATE TABLE mcp_servers (
        tenant TEXT NOT NULL,
        server TEXT NOT NULL,
        rev INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (tenant, server)
      ) STRICT, WITHOUT ROWID`,
    ],
  },
  {
    name: "0010_project_settings",
    statements: [
      "ALTER TABLE projects ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0",
      "ALTER TABLE projects ADD COLUMN hour INTEGER NOT NULL DEFAULT 0",
      "ALTER TABLE projects ADD COLUMN calls INTEGER NOT NULL DEFAULT 0",
    ],
  },
  {
    name: "0011_project_secrets",
    statements: [
      `CREATE TABLE project_secrets (
        tenant TEXT NOT NULL,
        project TEXT NOT NULL,
        id TEXT NOT NULL,
        target TEXT NOT NULL,
        sealed TEXT NOT NULL,
        updated_at INTEGER NOT NULL,
        PRIMARY KEY (tenant, project, id)
      ) STRICT, WITHOUT ROWID`,
    ],
  },
  {
    name: "0012_tasks",
    statements: [
      `CREATE INDEX turns_by_update ON turns (
        tenant, (record ->> 'userId'), (record ->> 'agentId'),
        (COALESCE(record ->> 'completedAt', record ->> 'updatedAt', record ->> 'createdAt')), id,
        conversation_id, conversation_at
      ) WHERE record ->> 'userId' IS NOT NULL AND record ->> 'caller' IS NULL`,
    ],
  },
  {
    name: "0013_origins",
    statements: [
      "ALTER TABLE runs ADD COLUMN input_preview TEXT",
      "ALTER TABLE conversations ADD COLUMN channel TEXT",
    ],
  },
];

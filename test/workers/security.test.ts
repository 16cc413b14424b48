/**
 * Every operation and every socket's door, tried by everybody who has no business there. The tables are complete: a
 * route without an expectation fails the first test.
 */

import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { unknownRun } from "../../src/agents/coordinator/core/record.ts";
import { D1DeadLetters } from "../../src/d1/dead-letters.ts";
import { OPERATIONS } from "../../src/http/operations.ts";
import { claimText } from "../../src/protocol/operation-handle.ts";
import { seededRepository } from "../support/seeded-repository.ts";
import { type Answer, answer, expectProblem, persona, reasonIn, SECURITY_HEADERS } from "./http-client.ts";
import { Play } from "./provider.ts";
import { actorOf, sign, TokenServer } from "./token-server.ts";
import { SseReader } from "./world.ts";

const server = new TokenServer();
const WORD = "a word that only its own conversation knows";
const TENANT_WORD = "a word that only its own tenant knows";
/** Ids that do not exist. */
const NOTHING = {
  agent: "nobody",
  conversation: "conv_01JD0000000000000000000000",
  turn: "turn_01JD0000000000000000000000",
  operation: "op_01JD0000000000000000000002",
  letter: "op_01JD0000000000000000000000",
  attachment: "att_01JD0000000000000000000000",
  library: "no-library",
  project: "no-project",
  pack: "pack-0000000000000000000000000000000000000000",
  trigger: "trig_01JD0000000000000000000000",
  run: "run_01JD0000000000000000000000",
  memory: "mem_01JD0000000000000000000000",
  message: "msg_01JD0000000000000000000000",
  idle: "conv_01JD0000000000000000000001",
};
type Ids = typeof NOTHING;

/** Callers with a valid token who do not take part in the conversation. */
const GUESTS = {
  /** Of another tenant, with the owner's name and every role. */
  stranger: { sub: "ada", tenant: "globex", roles: ["admin"] },
  outsider: { sub: "mel", roles: ["member"] },
  operator: { sub: "olga", roles: ["operator"] },
};
type Guest = keyof typeof GUESTS;
const GUEST_NAMES = Object.keys(GUESTS) as Guest[];

const NOT_FOUND = [404, "NOT_FOUND"] as const;
const NO_MODEL = [404, "MODEL_NOT_FOUND"] as const;
const FORBIDDEN = [403, "FORBIDDEN"] as const;
const NO_SOCKET = [426, "UPGRADE_REQUIRED"] as const;
/** The caller may perform the operation. A `GET` is performed. */
const MAY = "may";

type Expected = typeof MAY | readonly [status: number, code: string];
const same = (expected: Expected) => ({ stranger: expected, outsider: expected, operator: expected });
/** For a conversation: operators read it, and others get "not found". */
const READ = { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: MAY } as const;

/** For a memory of a user: a caller who may not read all memories gets "not found". */
const REMEMBERED = READ;
/** For the memories of an agent: other callers find only their own memories, an empty list. */
const MEMORIES = { stranger: NOT_FOUND, outsider: MAY, operator: MAY } as const;
/** For an agent: its tenant may see it, and its authors change it. */
const OF_AUTHORS = { stranger: NOT_FOUND, outsider: FORBIDDEN, operator: FORBIDDEN } as const;

/** For a library by API: its tenant reads it. */
const TENANTS = { stranger: NOT_FOUND, outsider: MAY, operator: MAY } as const;
/** Any tenant's authors may have a library of this id. */
const AUTHORS = { stranger: MAY, outsider: FORBIDDEN, operator: FORBIDDEN } as const;

/** The answer of each operation to each guest, by the operation's id. */
const EXPECTED: Record<string, Record<Guest, Expected>> = {
  createAgent: { stranger: MAY, outsider: FORBIDDEN, operator: FORBIDDEN },
  listAgents: same(MAY),
  getAgent: { stranger: NOT_FOUND, outsider: MAY, operator: MAY },
  getAgentUsage: { stranger: NOT_FOUND, outsider: FORBIDDEN, operator: MAY },
  changeAgent: OF_AUTHORS,
  deleteAgent: OF_AUTHORS,
  exportAgent: OF_AUTHORS,
  importAgent: AUTHORS,
  writeMemories: { stranger: NOT_FOUND, outsider: FORBIDDEN, operator: MAY },
  listMemories: MEMORIES,
  searchMemories: MEMORIES,
  searchMemoriesByBody: MEMORIES,
  searchMemoriesOfAgents: { stranger: MAY, outsider: FORBIDDEN, operator: MAY },
  getMemory: REMEMBERED,
  changeMemory: REMEMBERED,
  deleteMemory: REMEMBERED,
  archiveMemory: REMEMBERED,
  whyMemory: REMEMBERED,
  getMemoryStatus: { stranger: NOT_FOUND, outsider: FORBIDDEN, operator: MAY },
  listLibraries: same(MAY),
  getLibrary: TENANTS,
  createPersona: AUTHORS,
  listPersonas: TENANTS,
  getPersona: TENANTS,
  listPersonaVersions: TENANTS,
  getPersonaVersion: TENANTS,
  createTool: AUTHORS,
  listTools: TENANTS,
  getTool: TENANTS,
  listToolVersions: TENANTS,
  getToolVersion: TENANTS,
  createModelProfile: AUTHORS,
  listModelProfiles: TENANTS,
  getModelProfile: TENANTS,
  listModelProfileVersions: TENANTS,
  getModelProfileVersion: TENANTS,
  createTask: AUTHORS,
  listTasks: TENANTS,
  getTask: TENANTS,
  listTaskVersions: TENANTS,
  getTaskVersion: TENANTS,
  createAction: AUTHORS,
  listActions: TENANTS,
  getAction: TENANTS,
  listActionVersions: TENANTS,
  getActionVersion: TENANTS,
  createPrompt: AUTHORS,
  listPrompts: TENANTS,
  getPrompt: TENANTS,
  listPromptVersions: TENANTS,
  getPromptVersion: TENANTS,
  createWorkflow: AUTHORS,
  listWorkflows: TENANTS,
  getWorkflow: TENANTS,
  listWorkflowVersions: TENANTS,
  getWorkflowVersion: TENANTS,
  createSkill: AUTHORS,
  listSkills: TENANTS,
  getSkill: TENANTS,
  listSkillVersions: TENANTS,
  getSkillVersion: TENANTS,
  listMcpServers: { stranger: MAY, outsider: FORBIDDEN, operator: MAY },
  acceptMcpTools: { stranger: NOT_FOUND, outsider: FORBIDDEN, operator: MAY },
  createProject: AUTHORS,
  listProjects: same(MAY),
  getProject: TENANTS,
  changeProject: { stranger: NOT_FOUND, outsider: FORBIDDEN, operator: MAY },
  deleteProject: OF_AUTHORS,
  putProjectSecret: { stranger: NOT_FOUND, outsider: FORBIDDEN, operator: MAY },
  listProjectSecrets: { stranger: NOT_FOUND, outsider: FORBIDDEN, operator: MAY },
  fetchRepository: OF_AUTHORS,
  pushRepository: OF_AUTHORS,
  deleteProjectSecret: { stranger: NOT_FOUND, outsider: FORBIDDEN, operator: MAY },
  createRepository: OF_AUTHORS,
  deleteRepository: OF_AUTHORS,
  listBranches: { stranger: NOT_FOUND, outsider: FORBIDDEN, operator: MAY },
  exportRepository: { stranger: NOT_FOUND, outsider: FORBIDDEN, operator: MAY },
  readGitReferences: { stranger: NOT_FOUND, outsider: FORBIDDEN, operator: MAY },
  readGitHead: { stranger: NOT_FOUND, outsider: FORBIDDEN, operator: MAY },
  listGitPacks: { stranger: NOT_FOUND, outsider: FORBIDDEN, operator: MAY },
  readGitPack: { stranger: NOT_FOUND, outsider: FORBIDDEN, operator: MAY },
  importRepository: OF_AUTHORS,
  writeFiles: OF_AUTHORS,
  listArtifacts: TENANTS,
  readArtifact: TENANTS,
  writeArtifact: OF_AUTHORS,
  deleteArtifact: OF_AUTHORS,
  createConversation: { stranger: NOT_FOUND, outsider: MAY, operator: MAY },
  listConversations: same(MAY),
  getConversation: READ,
  pinConversation: READ,
  unpinConversation: READ,
  archiveConversation: READ,
  unarchiveConversation: READ,
  deleteConversation: READ,
  exportConversation: READ,
  importConversation: AUTHORS,
  eraseEntry: READ,
  updateConversation: { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: FORBIDDEN },
  cancelConversation: READ,
  resumeConversation: { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: FORBIDDEN },
  sendSignals: { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: FORBIDDEN },
  completeConversation: { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: FORBIDDEN },
  addParticipant: { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: FORBIDDEN },
  removeParticipant: { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: FORBIDDEN },
  listMessages: READ,
  listJournal: READ,
  getProjection: READ,
  getCauses: READ,
  listIncidents: READ,
  uploadAttachment: { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: FORBIDDEN },
  getAttachment: READ,
  getWorkspace: READ,
  listWorkspaceFiles: READ,
  readWorkspaceFile: READ,
  diffWorkspace: READ,
  listWorkspaceCommits: READ,
  commitWorkspace: { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: FORBIDDEN },
  mergeWorkspace: OF_AUTHORS,
  startTurn: { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: FORBIDDEN },
  regenerateTurn: { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: FORBIDDEN },
  editTurn: { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: FORBIDDEN },
  forkConversation: { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: FORBIDDEN },
  startRun: TENANTS,
  listRuns: same(MAY),
  getRun: READ,
  cancelRun: READ,
  retryRun: READ,
  answerGate: READ,
  listApprovals: same(MAY),
  listRunEntries: READ,
  getRunTrace: READ,
  getRunWorkflow: READ,
  getRunWorkspace: READ,
  deleteRunWorkspace: READ,
  listRunWorkspaceFiles: READ,
  readRunWorkspaceFile: READ,
  diffRunWorkspace: READ,
  listRunWorkspaceCommits: READ,
  followRun: READ,
  createTrigger: { stranger: NOT_FOUND, outsider: FORBIDDEN, operator: FORBIDDEN },
  listTriggers: same(MAY),
  getTrigger: READ,
  changeTrigger: { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: FORBIDDEN },
  deleteTrigger: { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: FORBIDDEN },
  rotateTriggerSecret: { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: FORBIDDEN },
  deliverToTrigger: same(NOT_FOUND),
  deliverToChannel: same(NOT_FOUND),
  completeOperation: same(NOT_FOUND),
  resolveApproval: READ,
  submitToolResult: { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: FORBIDDEN },
  listTurns: READ,
  getTurn: READ,
  getTrace: READ,
  getTurnPrompt: READ,
  getRecording: READ,
  replayTurn: READ,
  listAllTurns: same(MAY),
  listEvents: { stranger: MAY, outsider: FORBIDDEN, operator: MAY },
  searchMessages: same(MAY),
  cancelTurn: READ,
  followConversation: READ,
  chat: { stranger: NOT_FOUND, outsider: NOT_FOUND, operator: FORBIDDEN },
  resumeChat: READ,
  openAiListModels: same(MAY),
  openAiGetModel: { stranger: NO_MODEL, outsider: MAY, operator: MAY },
  openAiChatCompletion: { stranger: NO_MODEL, outsider: MAY, operator: MAY },
  openAiCreateResponse: { stranger: NO_MODEL, outsider: MAY, operator: MAY },
  openAiGetResponse: READ,
  openAiCancelResponse: READ,
  runAgent: { stranger: NOT_FOUND, outsider: MAY, operator: MAY },
  getAgentCard: { stranger: NOT_FOUND, outsider: MAY, operator: MAY },
  callA2a: { stranger: NOT_FOUND, outsider: MAY, operator: MAY },
  sendA2aMessage: { stranger: NOT_FOUND, outsider: MAY, operator: MAY },
  listA2aTasks: same(MAY),
  getA2aTask: READ,
  changeA2aTask: READ,
  createA2aPushConfig: same(NOT_FOUND),
  listA2aPushConfigs: READ,
  getA2aPushConfig: same(NOT_FOUND),
  deleteA2aPushConfig: READ,
  getA2aExtendedCard: { stranger: NOT_FOUND, outsider: MAY, operator: MAY },
  connect: same(NO_SOCKET),
  connectSdk: same(NO_SOCKET),
  listDeadLetters: { stranger: MAY, outsider: FORBIDDEN, operator: MAY },
  redeliver: { stranger: NOT_FOUND, outsider: FORBIDDEN, operator: MAY },
  getHealth: same(MAY),
  getMe: same(MAY),
  getListsDatabase: { stranger: MAY, outsider: FORBIDDEN, operator: MAY },
  moveLists: { stranger: MAY, outsider: FORBIDDEN, operator: FORBIDDEN },
  getDescription: same(MAY),
};

const DEFINITIONS = {
  personas: { id: "known", identity: { systemPrompt: TENANT_WORD } },
  tools: { id: "known", name: "known", description: TENANT_WORD, target: { task: "test/double" } },
  "model-profiles": { id: "known", provider: "offline", modelId: TENANT_WORD },
  actions: { id: "known", kind: "update_context", values: { word: `"${TENANT_WORD}"` } },
  prompts: { id: "known", template: TENANT_WORD },
  tasks: {
    id: "known",
    description: TENANT_WORD,
    inputSchema: { type: "object" },
    steps: [{ ref: "one", action: { kind: "update_context", values: { n: "1" } } }],
  },
  workflows: {
    id: "known",
    name: TENANT_WORD,
    inputSchema: { type: "object" },
    initialNode: "one",
    nodes: [{ ref: "one" }],
  },
  skills: {
    id: "known",
    files: { "SKILL.md": `---\nname: known\ndescription: ${TENANT_WORD}\n---\n` },
  },
};
const FAR = { at: "2099-01-01T00:00:00Z" };
const BODIES: Record<string, (ids: Ids) => unknown> = {
  moveLists: () => ({ database: "DB" }),
  createPersona: () => DEFINITIONS.personas,
  createTool: () => DEFINITIONS.tools,
  createModelProfile: () => DEFINITIONS["model-profiles"],
  createAction: () => DEFINITIONS.actions,
  createPrompt: () => DEFINITIONS.prompts,
  createTask: () => DEFINITIONS.tasks,
  createWorkflow: () => DEFINITIONS.workflows,
  createSkill: () => DEFINITIONS.skills,
  acceptMcpTools: () => ({ tools: [{ id: "none", hash: "none" }] }),
  createProject: ({ project }) => ({ id: project }),
  changeProject: () => ({ name: TENANT_WORD }),
  fetchRepository: () => ({ url: `${env.GIT_URL}/absent` }),
  pushRepository: () => ({ url: `${env.GIT_URL}/stolen` }),
  putProjectSecret: () => ({ value: "let-me-in", hosts: ["api.example.com"] }),
  createRepository: () => ({ id: "further" }),
  writeFiles: () => ({ files: { "README.md": "Let me in." } }),
  writeArtifact: () => ({ content: "Let me in." }),
  createAgent: () => ({ persona }),
  changeAgent: () => ({ projectIds: ["taken-over"] }),
  writeMemories: () => ({ content: "Let me in." }),
  searchMemoriesByBody: () => ({ query: "in" }),
  changeMemory: () => ({ content: "Let me in." }),
  createConversation: ({ agent }) => ({ agentId: agent }),
  startTurn: () => ({ content: "Let me in." }),
  regenerateTurn: () => ({}),
  editTurn: () => ({ content: "Let me in." }),
  forkConversation: () => ({}),
  updateConversation: () => ({ turns: "queued" }),
  cancelConversation: () => ({}),
  resumeConversation: () => ({}),
  sendSignals: () => ({ type: "conversation.user.message", data: { content: "Let me in." } }),
  completeConversation: () => ({}),
  addParticipant: () => ({ type: "user", id: "mallory" }),
  commitWorkspace: () => ({ message: "Let me in." }),
  mergeWorkspace: () => ({ strategy: "force" }),
  cancelTurn: () => ({}),
  chat: () => ({ messages: [{ id: "mine", role: "user", parts: [{ type: "text", text: "Let me in." }] }] }),
  openAiChatCompletion: ({ agent }) => ({
    model: agent,
    messages: [{ role: "user", content: "Let me in." }],
  }),
  openAiCreateResponse: ({ agent }) => ({ model: agent, input: "Let me in." }),
  runAgent: () => ({ threadId: "mine", runId: "mine", messages: [{ role: "user", content: "Let me in." }] }),
  callA2a: () => ({
    ...{ jsonrpc: "2.0", id: 1, method: "SendMessage" },
    params: { message: { messageId: "mine", role: "ROLE_USER", parts: [{ text: "Let me in." }] } },
  }),
  createA2aPushConfig: () => ({ url: `${env.WEBHOOK_URL}/hooks/stolen` }),
  sendA2aMessage: () => ({
    message: { messageId: "rest", role: "ROLE_USER", parts: [{ text: "Let me in." }] },
  }),
  resolveApproval: () => ({ approved: true }),
  submitToolResult: () => ({ result: "Let me in." }),
  completeOperation: () => ({ result: "Let me in." }),
  startRun: ({ library }) => ({ workflow: `${library}/known`, input: {} }),
  answerGate: () => ({ answer: { approved: true } }),
  cancelRun: () => ({ reason: "Enough." }),
  retryRun: () => ({ repeatOnce: true }),
  createTrigger: ({ conversation }) => ({
    when: FAR,
    starts: { conversationId: conversation, content: "Let me in." },
  }),
  changeTrigger: () => ({ enabled: false }),
  deliverToTrigger: () => "Let me in.",
  deliverToChannel: () => "Let me in.",
};

const QUERIES: Record<string, () => string> = {
  searchMemories: () => "?q=word",
  searchMessages: () => "?q=word",
  readWorkspaceFile: () => "?path=README.md",
  readRunWorkspaceFile: () => "?path=README.md",
  readArtifact: () => "?path=README.md",
  writeArtifact: () => "?path=README.md",
  deleteArtifact: () => "?path=README.md",
  // The answer lists the requested names that were not found.
  searchMemoriesOfAgents: () => "?agents=nobody&q=word",
};

const NO_TOKEN = "Bearer";
const NOT_VALID = 'Bearer error="invalid_token", error_description="The token is not valid."';
const EXPIRED = 'Bearer error="invalid_token", error_description="The token has expired."';
/** The headers of a refusal. They reveal no participant and no object. */
const ANSWER_HEADERS = [
  "cache-control",
  "content-type",
  "www-authenticate",
  ...Object.keys(SECURITY_HEADERS),
].toSorted();
const encoded = (value: unknown) => btoa(JSON.stringify(value)).replace(/=+$/, "");

/** Invalid credentials, and the challenge in each answer. */
const BAD: [what: string, make: () => string | null | Promise<string>, challenge: string][] = [
  ["no token", () => null, NO_TOKEN],
  ["garbage", () => "garbage", NOT_VALID],
  ["an expired token", () => sign({ roles: ["admin"], exp: 1 }), EXPIRED],
  ["a forged token", () => sign({ roles: ["admin"] }, { key: "x".repeat(32) }), NOT_VALID],
  [
    "an unsigned token",
    () =>
      `${encoded({ alg: "none" })}.${encoded({ sub: "ada", tenant: "acme", exp: 9e9, roles: ["admin"] })}.`,
    NOT_VALID,
  ],
];

let owner: string;
let ids: Ids;

beforeAll(async () => {
  owner = await sign({ roles: ["admin"] });
  await seededRepository("acme", "default", { "README.md": "A file.\n" });
  const { id: agent } = await server.call<{ id: string }>(owner, "POST", "/api/agents", 201, {
    persona: "test/plain",
  });
  const { id: conversation } = await server.call<{ id: string }>(owner, "POST", "/api/conversations", 201, {
    agentId: agent,
  });
  const { id: memory } = await server.call<{ id: string }>(
    owner,
    "POST",
    `/api/agents/${agent}/memories`,
    201,
    { content: WORD, subject: { userId: "ada" } },
  );
  const { id: idle } = await server.call<{ id: string }>(owner, "POST", "/api/conversations", 201, {
    agentId: agent,
  });
  const play = new Play({ replies: [[{ text: WORD }]] });
  const turn = await server.as(owner, `/api/conversations/${conversation}/turns`, {
    method: "POST",
    headers: { accept: "text/event-stream" },
    body: JSON.stringify({ content: play.content }),
  });
  await turn.text();
  const path = `/api/conversations/${conversation}/turns`;
  const { turns } = await server.call<{ turns: { id: string }[] }>(owner, "GET", path, 200);
  const said = `/api/conversations/${conversation}/messages`;
  const { messages } = await server.call<{ messages: { id: string }[] }>(owner, "GET", said, 200);
  const asking = new Play({ replies: [[{ call: "ask", input: {} }]] });
  const tools = [{ name: "ask", description: "Asks.", inputSchema: { type: "object" } }];
  const waiting = await server.as(owner, path, {
    method: "POST",
    headers: { accept: "text/event-stream" },
    body: JSON.stringify({ content: asking.content, tools }),
  });
  if (waiting.body === null) throw new Error("The stream has no body.");
  const frames = new SseReader(waiting.body);
  const { operationId: operation = "" } = await frames.upTo("tool.requested");
  await frames.upTo("turn.waiting");
  await frames.cancel();
  const upload = await server.as(owner, `/api/conversations/${conversation}/attachments`, {
    method: "POST",
    headers: { "content-type": "text/plain" },
    body: WORD,
  });
  const { id: attachment } = await upload.json<{ id: string }>();
  const letter = "op_01JD0000000000000000000001";
  const address = { kind: "conversation", tenant: "acme", id: conversation };
  // SAFETY: `test/wrangler.jsonc` binds it.
  await new D1DeadLetters(Reflect.get(env, "DB") as D1Database).put("acme", {
    id: letter,
    status: "failed",
    type: "conversation.opened",
    from: address,
    to: { ...address, kind: "agent", id: agent },
    error: { code: "UNAVAILABLE", message: WORD, retriable: true },
    attempts: 10,
    body: WORD,
    sentAt: "2026-01-01T00:00:00.000Z",
    diedAt: "2026-01-01T01:00:00.000Z",
  });
  const library = "private";
  for (const [kind, definition] of Object.entries(DEFINITIONS)) {
    await server.call(owner, "POST", `/api/libraries/${library}/${kind}`, 201, definition);
  }
  const project = "private";
  const code = { id: project, name: TENANT_WORD, repositories: [{ id: "code" }] };
  await server.call(owner, "POST", "/api/projects", 201, code);
  const secret = { value: "the-secret-of-the-owner", hosts: ["api.example.com"] };
  await server.call(owner, "PUT", `/api/projects/${project}/secrets/stock`, 200, secret);
  const files = { "README.md": TENANT_WORD };
  for (const repo of ["code", "artifacts"])
    await server.call(owner, "PUT", `/api/projects/${project}/repos/${repo}/files`, 200, { files });
  const packs = await (await server.as(owner, `/git/${project}/code/objects/info/packs`)).text();
  const [pack = ""] = /pack-\w+/.exec(packs) ?? [];
  const { id: trigger } = await server.call<{ id: string }>(owner, "POST", "/api/triggers", 201, {
    when: { webhook: true },
    starts: { conversationId: conversation, content: WORD },
  });
  const { id: run } = await server.call<{ id: string }>(owner, "POST", "/api/runs", 201, {
    workflow: `${library}/known`,
  });
  // The stream ends with the run.
  await (await server.as(owner, `/api/runs/${run}/events`)).text();
  ids = {
    agent,
    conversation,
    turn: turns[0]?.id ?? "",
    operation,
    letter,
    attachment,
    library,
    project,
    pack,
    trigger,
    run,
    memory,
    message: messages[0]?.id ?? "",
    idle,
  };
  expect(ids.turn).toMatch(/^turn_/);
});

/** All state that an unauthorised caller could have changed. */
async function state(): Promise<string> {
  const conversation = `/api/conversations/${ids.conversation}`;
  const paths = ["", "/journal", "/turns", "/messages"].map((part) => `${conversation}${part}`);
  const answers = await Promise.all(
    [
      ...[
        ...paths,
        `/api/agents/${ids.agent}`,
        `/api/agents/${ids.agent}/memories`,
        "/api/agents",
        "/api/dead-letters",
        "/api/libraries",
        ...["/api/projects", `/api/projects/${ids.project}`],
      ],
      ...[`/api/triggers/${ids.trigger}`, `/api/runs/${ids.run}`],
      ...Object.keys(DEFINITIONS).map((kind) => `/api/libraries/${ids.library}/${kind}/known/versions`),
    ].map((path) => server.call(owner, "GET", path, 200)),
  );
  const sockets = await runInDurableObject(actorOf(ids.conversation), (_, { storage }) =>
    JSON.stringify([...storage.sql.exec("SELECT name FROM sqlite_master")]),
  );
  return JSON.stringify([answers, sockets]);
}

function pathOf(path: string, ids: Ids, method = "get"): string {
  const { agent, conversation, turn, operation, letter, attachment, library, project, trigger, run } = ids;
  // A conversation with work in progress has no export.
  if (path.startsWith("/api/conversations/:id/export")) return path.replace(":id", ids.idle);
  if (path.startsWith("/api/runs")) return path.replace(":id", run).replace(":operationId", operation);
  if (/triggers|hooks/.test(path)) return path.replace(":tenant", "acme").replace(":id", trigger);
  if (path.startsWith("/api/libraries")) {
    return path.replace(":library", library).replace(":id", "known").replace(":version", "1");
  }
  if (/^\/(?:api\/projects|git)/.test(path))
    return path
      .replace(":project", project)
      .replace(":repo", "code")
      .replace(":secret", "stock")
      .replace(":file", `${ids.pack}.idx`);
  const response = `resp_${conversation.slice(-26)}${turn.slice(-26)}_0`;
  const id = path.includes("conversation")
    ? conversation
    : /agents|models|agui|a2a/.test(path)
      ? agent
      : path.includes("responses")
        ? response
        : letter;
  const filled = path
    .replace(":turnId", turn)
    .replace(
      ":handle",
      `${claimText({ tenant: "acme", conversationId: conversation, operationId: operation, expiresAt: 9e12 })}.${"A".repeat(43)}`,
    )
    .replace(":operationId", operation)
    .replace(":attachmentId", attachment)
    .replace(":server", "steady")
    .replace(":channel", "team-chat")
    .replace(":memoryId", ids.memory)
    .replace(":eventId", ids.message)
    .replace(":type/:participantId", "user/ada")
    .replace(":name", "diagnostics")
    .replace(":message", "message%3Asend")
    .replace(
      ":task",
      `${encodeURIComponent(`${conversation}:${turn}`)}${method === "post" && !path.endsWith("Configs") ? "%3Acancel" : ""}`,
    )
    .replace(":config", "one")
    .replace(":seq", "1")
    .replace(":id", id);
  expect(filled, "the path has parameters that this test does not know").not.toContain(":");
  return filled;
}

function request(operation: (typeof OPERATIONS)[number], token: string | null, of = ids): Promise<Response> {
  const { id, method, path } = operation;
  const body = BODIES[id]?.(of);
  const init = {
    method: method.toUpperCase(),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  };
  const target = `${pathOf(path, of, method)}${QUERIES[id]?.() ?? ""}`;
  return token === null ? server.fetch(target, init) : server.as(token, target, init);
}

/** An answer as a problem, independent of the operation's error format. */
async function refusalOf({ errorFormat }: (typeof OPERATIONS)[number], response: Response): Promise<Answer> {
  if (errorFormat === undefined) return answer(response);
  const read = await response.json<{ error: { code: string; message: string } }>();
  const { status } = response;
  const error = { ...read.error, ...(errorFormat === "a2a" && { code: reasonIn(read) }) };
  const body = {
    type: "about:blank",
    title: "-",
    status,
    detail: error.message,
    code: error.code.toUpperCase(),
  };
  const headers = new Headers(response.headers);
  headers.set("content-type", "application/problem+json");
  return answer(new Response(JSON.stringify(body), { status, headers }));
}

/** The whole answer, without the ids in the request. */
async function whole(response: Response, of: Ids): Promise<string> {
  const answer = JSON.stringify([response.status, [...response.headers], await response.text()]);
  // They are sorted by likeness to the name.
  const text = answer.replace(/Deployed libraries: [^.]*/, "");
  // Ids of the OpenAI protocols are made of others without their prefixes.
  const all = Object.values(of);
  const names = [...all, ...all.map((id) => id.slice(id.indexOf("_") + 1))];
  return names.reduce((rest, name) => rest.replaceAll(name, "…"), text);
}

const DOORS = OPERATIONS.filter(({ answers }) => answers.some(({ status }) => status === 101));
/** The doors of conversations. */
const SOCKETS = DOORS.filter(({ id }) => id !== "followRun");

test("API-2 exactly the operations have expectations here", () => {
  expect(Object.keys(EXPECTED).toSorted(), "Add each operation to EXPECTED.").toEqual(
    OPERATIONS.map(({ id }) => id).toSorted(),
  );
  const withBody = OPERATIONS.filter(({ body }) => body !== undefined).map(({ id }) => id);
  expect(Object.keys(BODIES).toSorted(), "Add the body of each operation to BODIES.").toEqual(
    withBody.toSorted(),
  );
  expect(DOORS.map(({ id }) => id).toSorted()).toEqual(["connect", "connectSdk", "followRun"]);
});

describe("AUTH-1 a bad credential", () => {
  test.each(BAD)("%s: every operation answers 401, and changes no state", async (_, make, challenge) => {
    const token = await make();
    const before = await state();
    for (const operation of OPERATIONS) {
      const response = await request(operation, token);
      if (operation.open === true) {
        // An unsigned handle or delivery is unknown for every sender.
        const isSigned = ["completeOperation", "deliverToTrigger", "deliverToChannel"].includes(operation.id);
        expect(response.status).toBe(isSigned ? 404 : 200);
        continue;
      }
      const refused = await refusalOf(operation, response);
      expectProblem(refused, 401, "UNAUTHENTICATED");
      expect(refused.headers.get("www-authenticate"), operation.id).toBe(challenge);
      expect([...refused.headers.keys()].toSorted()).toEqual(ANSWER_HEADERS);
    }
    expect(await state()).toBe(before);
  });

  test("reveals no methods either", async () => {
    for (const path of new Set(OPERATIONS.filter(({ open }) => open !== true).map(({ path }) => path))) {
      for (const method of ["HEAD", "OPTIONS", "GET", "POST", "PUT", "PATCH", "DELETE", "PROPFIND"]) {
        const response = await server.fetch(pathOf(path, ids), { method });
        expect([response.status, response.headers.get("allow")], `${method} ${path}`).toEqual([401, null]);
      }
    }
  });

  test.each(BAD)("BEARER-3 %s: every socket's door is shut", async (_, make) => {
    const token = await make();
    const bearer = token === null ? [] : [`bearer.${token}`];
    for (const { path } of DOORS) {
      const target = pathOf(path, ids);
      expect((await server.knock(target, bearer)).response.status).toBe(401);
      const { client } = await server.knock(target, ["dramatis.v1", ...bearer]);
      expect(await client?.whenClosed()).toEqual({ code: 4401 });
      expect([client?.frames, client?.others]).toEqual([[], []]);
      // Only the first token counts, wherever others stand.
      if (token === null) continue;
      const second = await server.knock(target, ["dramatis.v1", ...bearer, `bearer.${owner}`]);
      expect(await second.client?.whenClosed()).toEqual({ code: 4401 });
    }
  });
});

describe("G7 a good token of someone else", () => {
  test.each(GUEST_NAMES)("%s: every operation answers as expected, and changes no state", async (guest) => {
    const token = await sign(GUESTS[guest]);
    const before = await state();
    for (const operation of OPERATIONS) {
      const expected = EXPECTED[operation.id]?.[guest];
      if (expected === MAY) {
        if (operation.method !== "get") continue;
        const response = await request(operation, token);
        expect(
          operation.answers.map(({ status }) => status),
          operation.id,
        ).toContain(response.status);
        const isStream = response.headers.get("content-type") === "text/event-stream";
        const text = isStream ? "" : await response.text();
        if (isStream) await response.body?.cancel();
        if (guest === "operator") continue;
        for (const secret of [WORD, ids.conversation, ids.letter]) expect(text).not.toContain(secret);
        if (guest !== "stranger") continue;
        for (const secret of [TENANT_WORD, ids.agent, ids.library]) expect(text).not.toContain(secret);
        continue;
      }
      const [status, code] = expected ?? [];
      const refused = await refusalOf(operation, await request(operation, token));
      expectProblem(refused, status ?? 0, code ?? "");
    }
    expect(await state()).toBe(before);
  });

  test.each(GUEST_NAMES)("%s: objects of other users are answered as unknown objects", async (guest) => {
    const token = await sign(GUESTS[guest]);
    for (const operation of OPERATIONS) {
      if (EXPECTED[operation.id]?.[guest] === MAY) continue;
      // A caller who may read an object may know that it exists.
      const isSpeech =
        EXPECTED[operation.id]?.operator === FORBIDDEN &&
        /\/(?:conversations|triggers|runs)\//.test(operation.path);
      if (isSpeech && guest === "operator") continue;
      // The tenant may see the agent, and no memory of it.
      const isOfAgent = operation.path.includes("/:memoryId") && guest !== "stranger";
      const nothing = isOfAgent ? { ...NOTHING, agent: ids.agent } : NOTHING;
      const [real, none] = [await request(operation, token), await request(operation, token, nothing)];
      expect(await whole(real, ids), operation.id).toBe(await whole(none, nothing));
    }
  });

  test("an operator reads over a socket, and cannot speak", async () => {
    const token = await sign(GUESTS.operator);
    const before = await state();
    for (const { path } of SOCKETS) {
      const client = await server.connect(token, pathOf(path, ids));
      await client.frame("snapshot");
      client.send({ type: "turn.start", id: "mine", content: "Let me speak." });
      expect((await client.frame("error")).data).toMatchObject({ code: "FORBIDDEN", ref: "mine" });
      client.close();
    }
    expect(await state()).toBe(before);
  });
});

describe("SOCKET-1, SOCKET-3 a caller who may not read gets the same answer at every socket", () => {
  /** Headers of a client that code behind the front door might trust. */
  const headers = {
    "x-dramatis-principal": encodeURIComponent(
      JSON.stringify({ subject: "ada", tenant: "acme", roles: ["admin"] }),
    ),
    "x-dramatis-protocol": "sdk",
    "x-test-principal": JSON.stringify({ subject: "ada", tenant: "acme", roles: ["admin"] }),
  };
  const tricks = (conversation: string) => ({
    ...headers,
    "x-partykit-room": `acme:${conversation}`,
    "x-partykit-namespace": "conversation",
    "x-cf-agents-subagent-url": `http://actor/sub/conversation/acme:${conversation}`,
  });
  const TRICKS = ["", "?_pk=mine", "?__agents_transport=capnweb&cf_agent_id=x", "?tenant=acme&room=x"];

  test.each(["stranger", "outsider"] as const)("%s", async (guest) => {
    const token = await sign(GUESTS[guest]);
    const before = await state();
    for (const { id, path } of DOORS) {
      for (const query of TRICKS) {
        for (const of of [ids, NOTHING]) {
          const target = `${pathOf(path, of)}${query}`;
          const message =
            id === "followRun" ? unknownRun().message : `There is no conversation "${of.conversation}".`;
          const offer = ["dramatis.v1", `bearer.${token}`];
          const { response, client } = await server.knock(target, offer, tricks(ids.conversation));
          expect([...response.headers]).toEqual([["sec-websocket-protocol", "dramatis.v1"]]);
          expect(await client?.whenClosed()).toEqual({ code: 4404 });
          const error = { code: "NOT_FOUND", message, retriable: false };
          if (id === "followRun") {
            expect([client?.frames, client?.others]).toEqual([[], [{ v: 1, type: "error", data: error }]]);
            continue;
          }
          expect(client?.frames.map(({ type, data }) => [type, data])).toEqual([["error", error]]);
          expect(client?.others).toEqual([]);
        }
      }
    }
    expect(await state()).toBe(before);
  });
});

describe("AGENT-3 frames of the SDK", () => {
  const FRAMES = [
    "cf_agent_state",
    "cf_agent_state_error",
    "cf_agent_identity",
    "cf_agent_session",
    "cf_agent_mcp_servers",
    "cf_mcp_agent_event",
    "cf_agent_use_chat_request",
    "cf_agent_use_chat_response",
    "cf_agent_chat_messages",
    "cf_agent_chat_clear",
    "cf_agent_chat_request_cancel",
    "cf_agent_stream_resume_request",
    "cf_agent_stream_resume_ack",
    "cf_agent_tool_result",
    "cf_agent_tool_approval",
    "cf_agent_message_updated",
  ].map((type) => ({
    type,
    id: "1",
    state: { owned: true },
    messages: [],
    toolCallId: "1",
    url: "http://a/",
  }));
  const CALLS = [
    ...["sql", "destroy", "setState", "schedule", "broadcast", "constructor", "__proto__", "toString"],
    ...["ingest", "startTurn", "deadLetters", "redeliver", "receive", "toolStatePut", "createSession"],
  ].map((method) => ({ type: "rpc", id: method, method, args: [{ subject: "ada", roles: ["admin"] }] }));

  test("have no effect for any sender, on both sockets", async () => {
    const quiet = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const before = await state();
    for (const { path } of SOCKETS) {
      const client = await server.connect(owner, pathOf(path, ids));
      await client.frame("snapshot");
      const greeting = client.others.length;
      const sent = [...FRAMES, ...CALLS];
      for (const frame of sent) client.sendText(JSON.stringify(frame));
      await client.settled();
      const others = client.others.slice(greeting);
      expect(client.framesOf("error").length + others.length).toBe(sent.length);
      for (const { data } of client.framesOf("error")) expect(data.code).toBe("INVALID_SIGNAL");
      if (path.startsWith("/conversations")) expect(client.others).toEqual([]);
      else {
        expect(others).toHaveLength(1 + CALLS.length);
        for (const other of others) {
          expect(JSON.stringify(other)).toMatch(/cf_agent_state_error|"success":false/);
        }
      }
      client.close();
    }
    expect(await state()).toBe(before);
    quiet.mockRestore();
  });
});

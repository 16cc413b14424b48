/** Artifacts on workerd, with the D1 database and the R2 bucket of the test's Worker. */
import { env } from "cloudflare:workers";
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Artifacts } from "../../src/artifacts/artifacts.ts";
import { ArtifactTypes } from "../../src/artifacts/types.ts";
import { ArtifactVectors } from "../../src/artifacts/vectors.ts";
import { D1Artifacts } from "../../src/d1/artifacts.ts";
import { ARTIFACTS, D1Repositories } from "../../src/d1/repositories.ts";
import { GitRepository } from "../../src/git/git-repository.ts";
import { oidOf } from "../../src/git/objects.ts";
import { Projects } from "../../src/git/projects.ts";
import type { Change } from "../../src/git/trees.ts";
import type { Embedder } from "../../src/memory/embedders/embedder.ts";
import { systemClock, systemIds } from "../../src/ports/system.ts";
import { R2ObjectStore } from "../../src/ports/workers/r2-object-store.ts";
import { MAX_ARTIFACT_BYTES } from "../../src/protocol/artifacts.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { LateVectors } from "../support/late-vectors.ts";
import { AUTHOR } from "../support/seeded-repository.ts";
import { get, post } from "./http-client.ts";
import { ARTIFACT_TYPES } from "./worker.ts";
import { ADA, checkInvariants, createConversation, request, type TestConversation } from "./world.ts";

// SAFETY: the configuration of the tests has these bindings.
const { DB, BUCKET } = env as unknown as { DB: D1Database; BUCKET: R2Bucket };
const AUTHORS: Principal = { subject: "anna", tenant: ADA.tenant, roles: ["author"] };
const MEMBER: Principal = { subject: "mel", tenant: ADA.tenant, roles: ["member"] };
const TOOLS = ["read", "list", "search", "write", "delete"].map((name) => `dramatis/artifact_${name}`);
const DECISION = JSON.stringify({ title: "Use JWT", status: "taken" });

let projects = 0;

/** Creates a project, and the service of its artifacts with a store of vectors. `statements` has the statements of D1. */
async function newProject() {
  const project = `artifacts-${++projects}`;
  const statements: string[] = [];
  const database = counted(DB, statements);
  const rows = new D1Repositories(database);
  await rows.createProject(ADA.tenant, { id: project, repositories: [] });
  const store = new LateVectors(3, systemClock);
  const git = { rows, objects: new R2ObjectStore(BUCKET), ids: systemIds };
  const place = { tenant: ADA.tenant, project };
  const index = new D1Artifacts(database, systemClock);
  const pauses = new Map<string, number>();
  const vectorsOf = (types: ArtifactTypes) =>
    new ArtifactVectors({
      ...{ store, index, types, pauses },
      clock: systemClock,
      embedder: async () => COLOURS,
    });
  const service = (types = ARTIFACT_TYPES, hasVectors = true) => {
    const checked = new ArtifactTypes(types, hasVectors ? "colours" : undefined);
    const shared = { index, types: checked, clock: systemClock };
    const vectors = vectorsOf(checked);
    return new Artifacts({ ...shared, git, ...(hasVectors ? { vectors } : {}) });
  };
  return {
    ...{ project, place, store, statements, service },
    artifacts: service(),
    projects: new Projects(git, vectorsOf(new ArtifactTypes([], undefined))),
    git: new GitRepository(git, { ...place, repo: ARTIFACTS }),
  };
}

/** Records the statements that reach a database. */
function counted(database: D1Database, statements: string[]): D1Database {
  return new Proxy(database, {
    get(target, name) {
      if (name === "prepare") {
        return (statement: string) => {
          statements.push(statement.split(/\s+/).slice(0, 3).join(" "));
          return target.prepare(statement);
        };
      }
      const member = Reflect.get(target, name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

/** Vectors of texts by the colours in them, so that texts without a common word are near. */
const COLOURS: Embedder = {
  ...{ id: "colours", dimensions: 3, isLocal: true },
  embed: async (texts) => texts.map(colourOf),
  embedQuery: async (text) => colourOf(text),
};

function colourOf(text: string): Float32Array | null {
  const at = [/red|crimson|scarlet/i, /blue|azure|navy/i, /green|emerald|lime/i].findIndex((one) =>
    one.test(text),
  );
  return at < 0 ? null : Float32Array.from([0, 1, 2], (index) => (index === at ? 1 : 0));
}

const writer = (key?: string) => ({ author: AUTHOR, ...(key === undefined ? {} : { key }) });
const paths = (found: readonly { path: string }[]) => found.map(({ path }) => path);

/** Creates an agent with the tools in projects, and a conversation of this agent. */
async function reader(projectIds: string[], more: object = {}) {
  const persona = {
    identity: { systemPrompt: "You read documents.", modelProfileId: "test/scripted" },
    tools: { toolIds: TOOLS },
    ...more,
  };
  const agent = await post("/api/agents", { persona, projectIds }, ADA);
  expect(agent.status, JSON.stringify(agent.body)).toBe(201);
  return Object.assign(await createConversation(agent.body.id), { agentId: agent.body.id });
}

/** Plays a turn with one call after the other. Returns the results of the calls, or their errors. */
async function calls(conversation: TestConversation, ...given: { call: string; input: object }[]) {
  const replies = [...given.map((one) => [one]), [{ text: "Done." }]];
  const { turnId } = await conversation.play({ replies });
  const turn = await conversation.ended(turnId);
  // SAFETY: the tests assert the results.
  return turn.moves.flatMap(({ toolResult }) =>
    toolResult === undefined ? [] : [(toolResult.result ?? toolResult.error) as Record<string, unknown>],
  );
}

/** Sends a request for artifacts. Returns the status and the body. */
async function ask(method: string, path: string, body?: object, principal = AUTHORS) {
  const init = { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  const response = await request(`/api/projects/${path}`, init, principal);
  const text = await response.text();
  return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
}

beforeEach(() => void vi.spyOn(console, "warn").mockReturnValue(undefined));
afterEach(() => void vi.restoreAllMocks());
afterAll(checkInvariants);

describe("an agent with the tools of artifacts", () => {
  test("A3 ARTCALL-1 writes, reads, lists, searches and deletes in its projects, and in no other", async () => {
    const [own, second, foreign] = [await newProject(), await newProject(), await newProject()];
    await second.artifacts.write(second.place, { path: "a.md", content: "# Second\n" }, writer());
    await foreign.artifacts.write(foreign.place, { path: "a.md", content: "# Foreign\n" }, writer());
    const conversation = await reader([own.project, second.project]);
    const results = await calls(
      conversation,
      { call: "artifact_write", input: { path: "decisions/jwt.json", content: DECISION, type: "decision" } },
      { call: "artifact_write", input: { path: "notes/tokens.md", content: "# Tokens\nThey expire." } },
      { call: "artifact_list", input: { type: "decision" } },
      { call: "artifact_list", input: { path: "notes/" } },
      { call: "artifact_search", input: { query: "When does a token expire?" } },
      { call: "artifact_read", input: { path: "notes/tokens.md" } },
      { call: "artifact_read", input: { path: "a.md", project: second.project } },
      { call: "artifact_read", input: { path: "a.md", project: foreign.project } },
      { call: "artifact_write", input: { path: "b.md", content: "Mine.", project: foreign.project } },
      { call: "artifact_delete", input: { path: "notes/tokens.md" } },
      { call: "artifact_read", input: { path: "notes/tokens.md" } },
    );
    const head = expect.stringMatching(/^[0-9a-f]{40}$/);
    const decision = {
      ...{ path: "decisions/jwt.json", type: "decision", title: "Use JWT", fields: { status: "taken" } },
      ...{ bytes: DECISION.length, updatedAt: expect.any(String) },
    };
    const note = {
      path: "notes/tokens.md",
      type: "note",
      title: "Tokens",
      bytes: 21,
      updatedAt: expect.any(String),
    };
    const denied = {
      ...{ code: "PERMISSION_DENIED", retriable: false },
      message: `The agent does not work in the project "${foreign.project}". Its projects: ${own.project}, ${second.project}.`,
    };
    expect(results).toEqual([
      { path: "decisions/jwt.json", version: head, type: "decision" },
      { path: "notes/tokens.md", version: head, type: "note" },
      { artifacts: [decision] },
      { artifacts: [note] },
      { artifacts: [note] },
      {
        path: "notes/tokens.md",
        version: results[1]?.version,
        type: "note",
        content: "# Tokens\nThey expire.",
      },
      { path: "a.md", version: head, content: "# Second\n" },
      denied,
      denied,
      { path: "notes/tokens.md", version: head, deleted: true },
      expect.objectContaining({ code: "NOT_FOUND" }),
    ]);
    const denials = (await conversation.journal()).filter(({ type }) => type === "policy.denied");
    expect(denials.map(({ data }) => data)).toEqual([{ rule: "project" }, { rule: "project" }]);
    const log = await own.git.log((await own.git.head("main")) ?? "", 5);
    expect(log.map(({ message }) => message.trim())).toEqual([
      "Delete notes/tokens.md",
      "Write notes/tokens.md",
      "Write decisions/jwt.json",
    ]);
    expect(await foreign.git.head("main")).toBe(
      (await foreign.git.log((await foreign.git.head("main")) ?? "", 1))[0]?.oid,
    );
  });

  test("ARTTYPE-1 a refused write says what to change, and changes nothing", async () => {
    const { project, git } = await newProject();
    const conversation = await reader([project]);
    const write = (path: string, content: string, more = {}) => ({
      ...{ call: "artifact_write", input: { path, content, ...more } },
    });
    const refused = await calls(
      conversation,
      write("decisions/x.json", '{"title":"X","status":"maybe"}'),
      write("decisions/x.json", "no JSON"),
      write("notes/x.md", "ab"),
      write("x.md", "x", { type: "decision" }),
      write("x.md", "x", { type: "decison" }),
      write("../x.md", "x"),
      write("a/.git/config", "x"),
      write("x.md", "x".repeat(MAX_ARTIFACT_BYTES + 1)),
      { call: "artifact_list", input: { type: "decison" } },
      { call: "artifact_delete", input: { path: "x.md" } },
    );
    expect(refused.map(({ code, message }) => [code, message])).toEqual([
      [
        "INVALID_INPUT",
        expect.stringContaining('"decisions/x.json" does not fit the type "decision": /status: '),
      ],
      ["INVALID_INPUT", expect.stringContaining("It must be JSON.")],
      ["INVALID_INPUT", expect.stringContaining('does not fit the type "note"')],
      ["INVALID_INPUT", expect.stringContaining("Its paths are like decisions/*.json.")],
      ["INVALID_INPUT", expect.stringContaining('Unknown type "decison".')],
      ["INVALID_INPUT", expect.stringContaining('".."')],
      ["INVALID_INPUT", expect.stringContaining('".git"')],
      ["INVALID_INPUT", expect.stringContaining("has 131073. Split it.")],
      ["INVALID_INPUT", 'Unknown type "decison". The types are: decision, note.'],
      ["NOT_FOUND", expect.any(String)],
    ]);
    expect(await git.head("main")).toBeNull();
  });

  test("A62 KNOWLEDGE-1 KNOWLEDGE-2 sees an index of the artifacts, and its memories of it are tainted", async () => {
    const { project, place, artifacts } = await newProject();
    await artifacts.write(place, { path: "decisions/jwt.json", content: DECISION }, writer());
    await artifacts.write(place, { path: "notes/long.md", content: "# Long\nHidden words." }, writer());
    const sent = async (conversation: TestConversation) => {
      const { play, turnId } = await conversation.play({ replies: [[{ text: "Read." }]] });
      await conversation.ended(turnId);
      const [first] = await play.requests(1);
      return JSON.stringify(first?.body);
    };
    const all = await sent(await reader([project], { knowledge: { artifacts: true } }));
    expect(all).toContain("Artifacts of this project");
    expect(all).toContain("decision (decisions/*.json), note (notes/**)");
    expect(all).toContain("notes/long.md");
    expect(all).not.toContain("Hidden");
    const some = await sent(await reader([project], { knowledge: { artifacts: ["decision"] } }));
    expect(some).toContain("decisions/jwt.json");
    expect(some).not.toContain("notes/long.md");
    expect(await sent(await reader([project]))).not.toContain("Artifacts of this project");
    const empty = (await newProject()).project;
    expect(await sent(await reader([empty], { knowledge: { artifacts: true } }))).not.toContain(
      "Artifacts of",
    );
    for (const knowledge of [{ knowledge: { artifacts: true } }, {}]) {
      const conversation = await reader([project], {
        ...knowledge,
        memory: { scope: "agent", extract: false },
      });
      await calls(conversation, { call: "remember", input: { content: "Tokens are JWT." } });
      const { body } = await get(`/api/agents/${conversation.agentId}/memories`, ADA);
      const { memories } = body as unknown as { memories: { tainted?: true }[] };
      expect(memories.map(({ tainted }) => tainted)).toEqual([knowledge.knowledge && true]);
    }
  });

  test("ARTIFACT-1 ARTIFACT-2 two agents that write at once lose nothing, and one of two with `ifVersion` wins", async () => {
    const { project, place, artifacts } = await newProject();
    const { version } = await artifacts.write(place, { path: "plan.md", content: "0" }, writer());
    const both = [await reader([project]), await reader([project])];
    await Promise.all(
      both.map((conversation, index) =>
        calls(
          conversation,
          ...["a", "b", "c"].map((name) => ({
            ...{ call: "artifact_write", input: { path: `${name}${index}.md`, content: name } },
          })),
        ),
      ),
    );
    const written = await artifacts.list(place, {});
    expect(paths(written.items)).toEqual(["a0.md", "a1.md", "b0.md", "b1.md", "c0.md", "c1.md", "plan.md"]);
    const swaps = await Promise.all(
      both.map((conversation, index) =>
        calls(conversation, {
          ...{
            call: "artifact_write",
            input: { path: "plan.md", content: `${index + 1}`, ifVersion: version },
          },
        }),
      ),
    );
    const [won, lost] = swaps.flat().toSorted((one) => (one.version === undefined ? 1 : -1));
    expect(won).toMatchObject({ path: "plan.md", version: expect.any(String) });
    expect(lost?.message).toContain(`"plan.md" is not as in version ${version}. Read it`);
    const { content } = await artifacts.read(place, { path: "plan.md" });
    expect(["1", "2"]).toContain(content);
  });

  test("ARTCALL-2 actions of a task write and read, and its memories after a read are tainted", async () => {
    const { project, place, artifacts } = await newProject();
    const library = `artifact-library-${projects}`;
    const string = { type: "string" };
    const task = {
      ...{ id: "file", description: "Files a text.", timeoutMs: 20_000 },
      inputSchema: { type: "object", properties: { text: string }, required: ["text"] },
      outputSchema: { type: "object", properties: { stored: string }, required: ["stored"] },
      steps: [
        {
          ...{ ref: "write", action: { kind: "artifact.write" } },
          inputMapping: { path: "'filed.md'", content: "input.text" },
        },
        {
          ...{ ref: "read", action: { kind: "artifact.read" } },
          inputMapping: { path: "'filed.md'" },
          outputMapping: { "output.stored": "result.content" },
        },
        {
          ...{ ref: "remember", action: { kind: "memory.write" } },
          inputMapping: { content: "'It says: ' + output.stored" },
        },
      ],
    };
    expect((await post(`/api/libraries/${library}/tasks`, task, AUTHORS)).status).toBe(201);
    const tool = { id: "file", name: "file", description: "Files a text.", target: { task: "file" } };
    expect((await post(`/api/libraries/${library}/tools`, tool, AUTHORS)).status).toBe(201);
    const memory = { scope: "agent", extract: false };
    const conversation = await reader([project], { tools: { toolIds: [`${library}/file`] }, memory });
    expect(await calls(conversation, { call: "file", input: { text: "Filed." } })).toEqual([
      { stored: "Filed." },
    ]);
    expect((await artifacts.read(place, { path: "filed.md" })).content).toBe("Filed.");
    const { body } = await get(`/api/agents/${conversation.agentId}/memories`, ADA);
    expect(body).toMatchObject({ memories: [{ content: "It says: Filed.", tainted: true }] });
  });
});

describe("the index of artifacts", () => {
  test("ARTIFACT-3 ARTVEC-2 a crash or a failure between the commit and the vector is repaired by the next search", async () => {
    const { place, artifacts, store } = await newProject();
    store.mood = "down";
    await artifacts.write(place, { path: "a.md", content: "The sky is azure." }, writer());
    await artifacts.write(place, { path: "b.md", content: "A crimson rose." }, writer());
    expect(store.ids()).toEqual([]);
    expect(paths(await artifacts.search(place, { query: "rose" }))).toEqual(["b.md"]);
    store.mood = "well";
    expect(paths(await artifacts.search(place, { query: "navy" }))).toEqual(["a.md"]);
    expect(store.ids()).toHaveLength(2);
  });

  test("ARTVEC-1 ARTVEC-3 vectors of overwritten and deleted artifacts go, also after a crash", async () => {
    const { place, artifacts, store } = await newProject();
    await artifacts.write(place, { path: "a.md", content: "The sky is azure." }, writer());
    const [old = ""] = store.ids();
    await artifacts.write(place, { path: "a.md", content: "The rose is red." }, writer());
    expect(store.ids()).toHaveLength(1);
    expect(store.ids()).not.toContain(old);
    expect(await artifacts.search(place, { query: "navy" })).toEqual([]);
    store.mood = "down";
    await artifacts.delete(place, { path: "a.md" }, writer());
    store.mood = "well";
    expect(store.ids()).toHaveLength(1);
    expect(await artifacts.search(place, { query: "scarlet" })).toEqual([]);
    expect(store.ids()).toEqual([]);
  });

  test("ARTVEC-1 PROJECT-1 a deleted project loses its vectors, and a late deletion spares the vectors of the next project", async () => {
    const { project, place, artifacts, store, projects: all } = await newProject();
    const input = { path: "a.md", content: "The sky is azure." };
    await artifacts.write(place, input, writer());
    store.mood = "down";
    await all.remove(place);
    store.mood = "well";
    expect(store.ids()).toHaveLength(1);
    await all.rows.createProject(ADA.tenant, { id: project, repositories: [] });
    await artifacts.write(place, input, writer());
    const [old, own] = store.ids();
    expect(own).not.toBe(old);
    const age = "UPDATE removed_repositories SET removed_at = 0 WHERE project = ?";
    await DB.prepare(age).bind(project).run();
    await all.finishRemovals();
    expect(store.ids()).toEqual([own]);
    expect(paths(await artifacts.search(place, { query: "navy" }))).toEqual(["a.md"]);
    await all.remove(place);
    expect(store.ids()).toEqual([]);
  });

  test("ARTIFACT-1 many writers at once lose nothing", async () => {
    const { place, artifacts, git } = await newProject();
    const names = Array.from({ length: 12 }, (_, index) => `${String.fromCharCode(97 + index)}.md`);
    await Promise.all(names.map((path) => artifacts.write(place, { path, content: path }, writer(path))));
    const { items } = await artifacts.list(place, {});
    expect(paths(items)).toEqual(names);
    expect(await git.log((await git.head("main")) ?? "", 20)).toHaveLength(12);
  });

  test("ARTIFACT-2 ARTROW-3 a repeated write changes nothing, also after the write of another agent", async () => {
    const { place, artifacts, git } = await newProject();
    const first = await artifacts.write(place, { path: "a.md", content: "1" }, writer("op_1"));
    await artifacts.write(place, { path: "a.md", content: "2" }, writer("op_2"));
    const removed = await artifacts.delete(place, { path: "a.md" }, writer("op_3"));
    await artifacts.write(place, { path: "a.md", content: "3" }, writer("op_4"));
    expect(await artifacts.write(place, { path: "a.md", content: "1" }, writer("op_1"))).toEqual(first);
    expect(await artifacts.delete(place, { path: "a.md" }, writer("op_3"))).toEqual(removed);
    const same = await artifacts.write(place, { path: "a.md", content: "3" }, writer("op_5"));
    await artifacts.write(place, { path: "a.md", content: "4" }, writer("op_6"));
    expect(await artifacts.write(place, { path: "a.md", content: "3" }, writer("op_5"))).toEqual(same);
    expect(await artifacts.read(place, { path: "a.md" })).toMatchObject({ content: "4" });
    expect((await artifacts.read(place, { path: "a.md", version: first.version })).content).toBe("1");
    expect(await git.log((await git.head("main")) ?? "", 20)).toHaveLength(5);
  });

  test("ARTROW-2 ARTIFACT-4 ARTIFACT-5 commits of other writers are in the next list, search and note", async () => {
    const { place, artifacts, git, service } = await newProject();
    await artifacts.write(place, { path: "old.md", content: "Old text." }, writer());
    const head = (await git.head("main")) ?? "";
    const encode = (text: string) => ({ content: new TextEncoder().encode(text) });
    const changes = new Map<string, Change>([
      ["old.md", null],
      ["new.md", encode("# New\nAn azure text.")],
      ["decisions/bad.json", encode('{"title":1}')],
      ["decisions/good.json", encode(DECISION)],
      ["image.png", { content: new Uint8Array([0, 1, 2]) }],
      ["link", { content: new TextEncoder().encode("new.md"), mode: "120000" as const }],
    ]);
    const input = { parents: [head], changes, message: "Elsewhere", author: AUTHOR, at: 9_000 };
    expect(await git.commit("main", head, input)).not.toBe("moved");
    expect((await artifacts.read(place, { path: "new.md" })).content).toBe("# New\nAn azure text.");
    const { items } = await artifacts.list(place, {});
    expect(items.map(({ path, type, title }) => [path, type, title])).toEqual([
      ["decisions/bad.json", undefined, ""],
      ["decisions/good.json", "decision", "Use JWT"],
      ["image.png", undefined, ""],
      ["new.md", undefined, "New"],
    ]);
    expect(paths(await artifacts.search(place, { query: "navy" }))).toEqual(["new.md"]);
    expect(await artifacts.knowledge(place)).toContain("new.md");
    await expect(artifacts.read(place, { path: "image.png" })).rejects.toMatchObject({
      code: "INVALID_INPUT",
    });
    await expect(artifacts.read(place, { path: "link" })).rejects.toMatchObject({ code: "NOT_FOUND" });
    // A deployment with other types makes the rows again.
    const other = service([{ id: "text", pathPattern: "**.md" }]);
    expect(paths((await other.list(place, { type: "text" })).items)).toEqual(["new.md"]);
    await expect(other.list(place, { type: "decision" })).rejects.toMatchObject({ code: "INVALID_INPUT" });
    const again = (await service().list(place, {})).items;
    expect(again).toEqual(items);
  });

  test("ARTROW-1 a write, a read and a note take few statements of D1", async () => {
    const { place, artifacts, service, statements } = await newProject();
    const plain = service(ARTIFACT_TYPES, false);
    await plain.write(place, { path: "a.md", content: "One azure text." }, writer("op_1"));
    const counts = async (work: () => Promise<unknown>) => {
      statements.length = 0;
      await work();
      return [...statements];
    };
    const written = await counts(() => plain.write(place, { path: "b.md", content: "b" }, writer("op_2")));
    expect(written).toHaveLength(9);
    const read = await counts(() => plain.read(place, { path: "b.md" }));
    expect(read).toHaveLength(2);
    expect(await counts(() => plain.knowledge(place))).toHaveLength(1);
    expect(await counts(() => plain.list(place, {}))).toHaveLength(2);
    expect(await counts(() => plain.search(place, { query: "azure" }))).toHaveLength(2);
    await artifacts.refresh(place);
    const embedded = await counts(() =>
      artifacts.write(place, { path: "c.md", content: "c" }, writer("op_3")),
    );
    expect(embedded).toHaveLength(11);
  });
});

describe("the routes of artifacts", () => {
  test("authors write, members read, and other tenants find nothing", async () => {
    const { project } = await newProject();
    const at = `${project}/artifact?path=${encodeURIComponent("notes/a b.md")}`;
    const put = await ask("PUT", at, { content: "# First note\n" });
    expect(put).toMatchObject({ status: 200, body: { path: "notes/a b.md", type: "note" } });
    const { version } = put.body;
    expect(await ask("GET", at, undefined, MEMBER)).toEqual({
      ...{ status: 200, body: { path: "notes/a b.md", version, type: "note", content: "# First note\n" } },
    });
    expect((await ask("PUT", at, { content: "# Other\n" }, MEMBER)).status).toBe(403);
    expect((await ask("DELETE", at, undefined, MEMBER)).status).toBe(403);
    const stranger: Principal = { subject: "eve", tenant: "globex", roles: ["admin"] };
    for (const [method, path, body] of [
      ["GET", at],
      ["GET", `${project}/artifacts`],
      ["GET", `${project}/artifacts?q=note`],
      ["GET", `${at}&version=${version}`],
      ["PUT", at, { content: "# Stolen\n" }],
      ["DELETE", at],
    ] as const)
      expect((await ask(method, path, body, stranger)).status, `${method} ${path}`).toBe(404);
    expect((await ask("PUT", at, { content: "# Second note\n", ifVersion: version })).status).toBe(200);
    const late = await ask("PUT", at, { content: "# Third note\n", ifVersion: version });
    expect(late).toMatchObject({ status: 409, body: { code: "CONFLICT" } });
    expect((await ask("DELETE", `${at}&ifVersion=${version}`)).status).toBe(409);
    for (const unknown of [
      "0".repeat(40),
      oidOf({ type: "blob", content: new TextEncoder().encode("# First note\n") }),
    ])
      expect(await ask("GET", `${at}&version=${unknown}`)).toMatchObject({
        status: 404,
        body: {
          detail: `The artifacts have no version ${unknown}. Leave out \`version\` to read the newest.`,
        },
      });
    const before = await ask("GET", `${at}&version=${version}`, undefined, MEMBER);
    expect(before.body.content).toBe("# First note\n");
    await ask("PUT", `${project}/artifact?path=b.md`, { content: "Something else." });
    const first = await ask("GET", `${project}/artifacts?limit=1`, undefined, MEMBER);
    expect(paths(first.body.artifacts)).toEqual(["b.md"]);
    const next = encodeURIComponent(first.body.nextCursor);
    const second = await ask("GET", `${project}/artifacts?limit=1&cursor=${next}`, undefined, MEMBER);
    expect(paths(second.body.artifacts)).toEqual(["notes/a b.md"]);
    expect(second.body.nextCursor).toBeUndefined();
    const found = await ask("GET", `${project}/artifacts?q=notes&path=notes`, undefined, MEMBER);
    expect(paths(found.body.artifacts)).toEqual(["notes/a b.md"]);
    expect((await ask("DELETE", at)).status).toBe(204);
    expect((await ask("GET", at)).status).toBe(404);
    for (const path of ["", "/etc/passwd", "a/../b", "a\\b", ".git/config"]) {
      const hostile = `${project}/artifact?path=${encodeURIComponent(path)}`;
      expect((await ask("PUT", hostile, { content: "x" })).status, path).toBe(422);
    }
  });

  test("ARTIFACT-4 files and bundles of the repository `artifacts` are in the index at once", async () => {
    const [from, to] = [await newProject(), await newProject()];
    const files = { "notes/one.md": "# One note\n", "two.md": "Two azure texts." };
    expect((await ask("PUT", `${from.project}/repos/artifacts/files`, { files })).status).toBe(200);
    expect(await from.artifacts.knowledge(from.place)).toContain('"path":"notes/one.md","type":"note"');
    const bundle = await request(`/api/projects/${from.project}/repos/artifacts/bundle`, {}, AUTHORS);
    const body = await bundle.arrayBuffer();
    const init = { method: "PUT", body };
    const sent = await request(`/api/projects/${to.project}/repos/artifacts/bundle`, init, AUTHORS);
    expect(sent.status).toBe(200);
    expect(await to.artifacts.knowledge(to.place)).toContain("two.md");
    const found = await ask("GET", `${to.project}/artifacts?q=texts`);
    expect(paths(found.body.artifacts)).toEqual(["two.md"]);
  });
});
